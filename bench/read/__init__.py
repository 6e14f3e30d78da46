"""Benchmarks of reading: text, languages, encodings, spam signals, hostile pages."""
