"""Convolutions, pooling, padding and sampling of images."""
