"""Near duplicates over a whole corpus: exact, in parallel, in bounded memory.

The shards of a corpus, the documents of a shard and the paragraphs of a document have an order. A paragraph is
dropped if more than a share of its shingles (runs of seven words) stand in earlier paragraphs that are kept.

1. `scatter` hashes the shingles of a shard, in blocks of paragraphs, each sorted by the upper bits of the hashes.
2. `gather` takes a range of hashes from all shards and keeps the hashes that occur more than once.
3. `rounds` decides paragraphs in rounds, from bounds that are certain for each of them, until all are decided.
4. `conclude` derives which paragraphs of a shard are dropped, short ones included, and counts them.

Each is a function from files to a file, which is written atomically; its bytes depend on the inputs alone.
`minhash` does the same for whole documents. The plans in `pipeline.steps` call these functions in their order;
`paragraphs.drop` and `documents.drop` run the same plans in one process.
"""
