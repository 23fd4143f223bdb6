"""`torch.fx.passes`: transformations of graphs, not built yet."""
