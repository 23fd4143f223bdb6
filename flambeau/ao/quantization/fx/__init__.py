"""Quantization of graphs: fusing, watching, and putting functions and modules of codes in place."""
