"""Crawls in shards: each process owns hosts and a state, they exchange links, and a coordinator leads them."""
