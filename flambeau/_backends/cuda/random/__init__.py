"""Random numbers on the device: PyTorch's, for the same seed."""
