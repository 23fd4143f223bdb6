"""Ops on quantized tensors."""
