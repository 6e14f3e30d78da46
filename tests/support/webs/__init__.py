"""Webs and servers on loopback that tests crawl."""
