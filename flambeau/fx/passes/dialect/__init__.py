"""Passes for the operators of one dialect, under the names of `torch.fx.passes.dialect`."""
