"""Sums with other kernels than the normalised exponential, on which attention without normalisation rests."""
