"""Fourier transforms, windows, differences."""
