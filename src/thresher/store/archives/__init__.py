"""Readers of archives of other crawlers (WARC, WET, ARC), record by record; damaged parts are skipped."""
