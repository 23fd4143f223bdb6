"""Android's interface for neural networks: an empty package, as PyTorch's own `torch.backends._nnapi` is."""
