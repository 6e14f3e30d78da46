"""Kernels of near duplicates, in a package of their own, so that other changes do not recompile them."""
