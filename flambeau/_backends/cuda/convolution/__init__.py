"""Convolutions and pooling on the device."""
