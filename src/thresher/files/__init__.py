"""Files of any kind: atomic and durable writing, logs that rotate, and the sources of this package."""
