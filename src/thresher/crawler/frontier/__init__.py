"""The queues of a crawl: which URL is next."""
