"""Kernels of near duplicates, in a folder of their own: a change in one compiles no others anew."""
