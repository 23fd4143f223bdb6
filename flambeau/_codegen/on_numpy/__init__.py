"""Kernels of generated code as NumPy runs them: the same operations in the same order, and so the same bits.

NumPy's additions, subtractions, multiplications, divisions, roots and comparisons are those of IEEE 754 on every
processor. Its other functions and its products are not the same everywhere, and are not used here. This is how
`reproducible("machine")` holds where no code can be generated: results have the bits of generated kernels, only later.
"""
