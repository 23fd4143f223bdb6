"""oneDNN through ctypes: matrix products and convolutions on NumPy arrays.

The library comes with the package `onednn-cpu-gomp`, which exists for Linux on x86-64; where it is missing, everything
here says so and nothing fails. It is looked for and loaded at the first call, not at the import.

Functions take arrays and return new arrays. They raise `Unsupported` where the caller should take another kernel: the
library is missing, a dtype, a shape or a processor for which it has no code or only its reference loops, an empty
array, or a corner in which it would differ from PyTorch. That answer is remembered, so asking again costs a few
microseconds. `ValueError` means that shapes do not fit together. Any strides will do; arrays that oneDNN cannot read in
place (negative or overlapping strides) are copied first.

| function | dtypes | returns |
|---|---|---|
| `available()`, `reason()`, `version()` | | whether the library can be used, why not, its version |
| `set_num_threads(n)` | | nothing; for the calling thread |
| `gemm(a, b)` | float32 | the product of two matrices, if this is the quickest way |
| `matmul(a, b, bias=None)` | float32, bfloat16, float16; int8 or uint8 by int8 | the product; int32 of integers |
| `Multiplier(rows, right)(left, out)` | float32 | nothing: products with a matrix that is reordered once |
| `convolution(input, weight, bias, geometry, last, packed)` | float32, bfloat16, float16 | the result |
| `convolution_input_gradient(grad, weight, input_shape, geometry, last, packed)` | as above | the gradient |
| `convolution_weight_gradient(grad, input, weight_shape, geometry, bias, last)` | | gradients of weight, bias or None |
| `transposed_convolution(input, weight, bias, geometry, output_padding, last, packed)` | | the result |
| `transposed_input_gradient(grad, weight, input_shape, geometry, last, packed)` | | the gradient |
| `transposed_weight_gradient(grad, input, weight_shape, geometry, last)` | | the gradient |
| `clear()` | | nothing; forgets primitives and buffers |

`geometry` is (stride, padding, dilation, groups), each a tuple with a number for each spatial dimension. `last` says
that the result's channels lie innermost. `packed` is a `PackedWeights` that the parameter's owner keeps:
`packed.at(version)`, with a number that changes whenever the weights do, saves reordering them at every call.

The files: `constants.py` (numbers of the C interface), `library.py` (finding, loading, errors, streams), `memory.py`
(descriptors, addresses, buffers), `primitives.py` (making, keeping and running primitives), and one for each family.
Pooling and recurrent layers have generated kernels.
"""

from .convolution import (
    Geometry,
    convolution,
    convolution_input_gradient,
    convolution_weight_gradient,
    transposed_convolution,
    transposed_input_gradient,
    transposed_weight_gradient,
)
from .gemm import gemm
from .library import Unsupported, available, reason, set_num_threads, version
from .matmul import Multiplier, matmul
from .primitives import PackedWeights, clear

__all__ = [
    "Geometry",
    "Multiplier",
    "PackedWeights",
    "Unsupported",
    "available",
    "clear",
    "convolution",
    "convolution_input_gradient",
    "convolution_weight_gradient",
    "gemm",
    "matmul",
    "reason",
    "set_num_threads",
    "transposed_convolution",
    "transposed_input_gradient",
    "transposed_weight_gradient",
    "version",
]
