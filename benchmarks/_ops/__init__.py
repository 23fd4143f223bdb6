"""The cases of `ops.py`: single ops, by family."""
