"""CUDA devices: arrays in a GPU's memory, and what runs ops on them. Nothing here is imported before it is asked for.

`driver.py` is all that knows the library underneath: memory, copies, compiled kernels, launches. `array.py` has the
arrays, which take part in NumPy's protocols, so that the reference kernels of ops run on them: `ufuncs.py` and
`functions.py` say how. Elementwise functions are generated (`pointwise.py`), others are the library's, and what it does
not have runs on the host (`host.py`).
"""
