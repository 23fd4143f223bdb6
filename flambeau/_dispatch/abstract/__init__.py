"""Tensors without data, and what is learnt by running functions on them."""
