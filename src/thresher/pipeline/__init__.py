"""Processing of a corpus in versioned steps; only tasks whose inputs changed run again."""
