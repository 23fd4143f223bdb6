"""Kernels along rows: reductions, scans, softmax, normalisations, losses."""
