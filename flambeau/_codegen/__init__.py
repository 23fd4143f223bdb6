"""Generated kernels: Python functions that write loops, which LLVM turns into machine code when they are first needed.

From the top down:

- `kernel.py`: `@kernel` makes a function that writes code into one that returns a compiled, callable kernel.
- `expr.py` traces NumPy bodies into expressions; `functions/` has what a processor does not: exp, log, erf, ...
- `build.py` is the language in which kernels are written: values with operators, loops, vectors, threads.
- `arrays.py` reads arrays and numbers that Python hands to a kernel; `lower.py` turns programs into instructions.
- The kernels: `elements/` (one element after the other, and lists of tensors), `rows/` (reductions, softmax,
  normalisations), `products/` (matrices, attention), `images/` (convolutions, pooling), `random/`; `cuda/` writes
  CUDA C from the same programs.
- `machine/`: `engine.py` compiles and links, `cache.py` keeps machine code, `threads.py` is the pool that runs loops in
  parallel, `allocator.py` is where the memory of large arrays comes from.

Nothing here is imported until a tensor is large enough to profit, and everything works without it.
"""
