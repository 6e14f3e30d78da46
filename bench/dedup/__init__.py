"""Benchmarks of near-duplicate detection."""
