"""Visit lists of URLs, rank seeds and sample the web."""
