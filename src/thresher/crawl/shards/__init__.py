"""A crawl in shards: each has its hosts, its loop and its books; they exchange links, and one of all leads them."""
