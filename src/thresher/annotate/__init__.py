"""Annotation: split paragraphs into sentences of tokens, with lemmas and parts of speech."""
