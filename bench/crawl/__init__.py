"""Benchmarks of crawling: the whole job, fetching, the frontier, shards."""
