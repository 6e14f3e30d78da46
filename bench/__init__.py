"""Benchmarks: one command each, `python -m bench.crawl` from the root of the repository.

Standard output has one line of JSON for each contender and a last one with ratios; progress and a table for
people go to standard error. Contenders run one after the other on the same web from the same seeds.
"""
