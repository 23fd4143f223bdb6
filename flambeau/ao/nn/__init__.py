"""Quantized layers, under the names of `torch.ao.nn`: not built yet."""
