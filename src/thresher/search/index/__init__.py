"""Build, merge and update the segments of an index."""
