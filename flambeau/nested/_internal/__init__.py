"""Nested tensors: the class, and how ops run on the values."""
