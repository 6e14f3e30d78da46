"""Files and state of a crawl."""
