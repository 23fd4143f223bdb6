"""Whether Flambeau's public functions take the arguments that PyTorch's take: names, positions and defaults.

`python -m tests.signatures` writes docs/signatures.md and shows what differs; `--update` writes `known.json` again.
"""
