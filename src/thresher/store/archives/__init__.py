"""Archives of other crawlers (WARC, WET, ARC), read record by record; damaged ones as far as they can be."""
