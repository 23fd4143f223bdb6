"""TorchScript's serialized language: read by Python's parser, never compiled by it, run by its own interpreter.

`source.py` reads files of definitions, `types.py` is about annotations, `program.py` finds what a qualified name means,
`expressions.py` and `statements.py` turn syntax into functions on frames, `calls.py` is the table of everything that a
program may call.
"""
