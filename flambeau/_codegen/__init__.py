"""Generated kernels: Python functions that write loops, which LLVM turns into machine code when they are first needed.

From the top down:

- `kernel.py`: `@kernel` makes a function that writes code into one that returns a compiled, callable kernel.
- `expr.py` traces NumPy bodies into expressions; `functions/` has what a processor does not: exp, log, erf, ...
- `build.py` is the language in which kernels are written: values with operators, loops, vectors, threads.
- `gemm.py` multiplies matrices, of which one may be an image; `conv.py` lays images out for it; `winograd.py` and
  `winograd_gradient.py` need fewer multiplications for kernels of 3x3; `conv_depthwise.py` is for single channels.
- `rules.py` traces the rules of optimizers into programs, `multi.py` runs them over lists of tensors.
- `allocator.py` is where the memory of large arrays comes from.
- `arrays.py` reads arrays and numbers that Python hands to a kernel.
- `threads.py` is the pool that runs loops in parallel; `engine.py` compiles and links; `cache.py` keeps machine code.

Nothing here is imported until a tensor is large enough to profit, and everything works without it.
"""
