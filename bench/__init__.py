"""Benchmarks: one command each, `python -m bench.crawl` from the root of the repository.

Standard output has one line of JSON for each contender and a last line with ratios; progress and a table for
people go to standard error. Contenders run one after the other on the same web from the same seeds.

A package is named after its main benchmark, which is its `__main__`; its other benchmarks are modules beside that.
`python -m bench` lists all of them.
"""

from pathlib import Path

GROUPS = ("crawl", "read", "query", "policy", "dedup")

# A benchmark is a command by its own name, without its group's: `python -m bench.fetch` runs bench/crawl/fetch.py.
__path__ += [str(Path(__file__).parent / group) for group in GROUPS]
