"""Elementwise ops on device arrays, copies, and updates of lists of arrays."""
