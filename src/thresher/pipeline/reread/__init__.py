"""Read stored raw pages again with the current reader."""
