"""Near duplicates over a whole corpus: exact, in parallel, in bounded memory (S5).

Shards of a corpus stand in an order, documents in a shard, and paragraphs in a document. A paragraph is dropped if
more than a share of its runs of seven words stand in earlier paragraphs that were kept. To find out,

1. `scatter` hashes the runs of a shard, in blocks of paragraphs, each sorted by the upper bits of the hashes;
2. `gather` takes a range of hashes from all shards and keeps those that occur more than once;
3. `rounds` decides, in rounds, from what can be said for certain of every paragraph, until all are decided;
4. `conclude` tells which paragraphs of a shard stay, short ones too, and how much goes.

Each is a function from files to a file, which appears whole or not at all, and whose bytes depend on nothing but
what it was made of. `minhash` does the like for documents. In what order they are called, the plans of
`batch/steps` tell; `paragraphs.drop` and `documents.drop` follow these in one process.
"""
