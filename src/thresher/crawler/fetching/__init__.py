"""HTTP, DNS and the polite way to fetch a page."""
