"""Comparing a model with its quantized forms."""
