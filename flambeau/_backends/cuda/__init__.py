"""CUDA devices: arrays in a GPU's memory, and what runs ops on them. Nothing here is imported before it is asked for.

`runtime/driver.py` is all that knows the library underneath: memory, copies, compiled kernels, launches. `arrays/` has
the arrays, which take part in NumPy's protocols, so that the reference kernels of ops run on them: `arrays/ufuncs.py`
and `arrays/functions.py` say how. Elementwise functions are generated (`elementwise/pointwise.py`), others are the
library's, and what it does not have runs on the host (`arrays/host.py`).

The folders have the names of those of `cpu/`; `arrays/` is what NumPy is there, and `cudnn/` what `onednn/` is.
"""
