"""From markup to blocks, links and metadata."""
