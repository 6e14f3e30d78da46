"""Compile queries and match them against one segment."""
