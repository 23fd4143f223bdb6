"""Elementwise ops on large arrays, copies, and updates of lists of arrays."""
