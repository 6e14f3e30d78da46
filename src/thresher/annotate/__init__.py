"""Annotation: from a paragraph to sentences of words with their lemmas and parts of speech."""
