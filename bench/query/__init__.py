"""Benchmarks of corpus queries."""
