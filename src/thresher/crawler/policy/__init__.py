"""Policies of a crawl: the value of a URL, and the yield of hosts and domains."""
