"""The crawl: frontier, policy, fetching, manners, storage, shards, and the loop that connects them."""
