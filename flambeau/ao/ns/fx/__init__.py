"""Comparing graphs with their quantized forms."""
