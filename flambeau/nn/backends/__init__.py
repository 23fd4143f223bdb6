"""An older place of functions behind layers, as PyTorch still has it."""
