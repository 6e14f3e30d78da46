"""A crawl in shards on paper: balance, what shards send each other, and politeness, before there are that many."""
