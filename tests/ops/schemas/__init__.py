"""Every schema of PyTorch's operators, called under both libraries: `python -m tests.ops.schemas`."""
