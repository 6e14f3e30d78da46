"""Files of a corpus: tables, raw pages, imports, shards, and their durable replacement."""
