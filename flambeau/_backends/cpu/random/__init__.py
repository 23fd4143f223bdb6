"""Random numbers: PyTorch's, for the same seed."""
