"""Compact on-disk structures of an index segment and the kernels that read them."""
