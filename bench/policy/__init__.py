"""Benchmarks of crawl policies."""
