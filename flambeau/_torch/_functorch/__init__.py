"""Transforms of functions under the names of `torch._functorch`, which libraries reach for."""
