"""robots.txt and politeness toward hosts."""
