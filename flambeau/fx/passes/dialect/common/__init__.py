"""Passes for the operators of `torch.ops.aten`."""
