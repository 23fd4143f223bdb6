"""`Op`: the record of an operation, which every backend, transform and tool shares.

An op has a name of its own, stable and public: profilers, captures, lowerings and errors say it. Its `kernel` is the
reference body, on arrays. Beside it stand what a caller without data or without that kernel needs to know: which
arguments it `writes`, whether it `draws` random numbers, whether its result is a `view`, which `shape` results, which
`axes` are independent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.tensor import Tensor
from .axes import Axes

Array = Any
"""Annotates the kernel parameters that are arrays."""

Kernel = Callable[..., Any]
Formula = Callable[..., Any]

OPS: dict[str, Op] = {}
"""Every op by name."""

OPTIONAL_TENSOR = "Array | None"
_TENSOR_ANNOTATIONS = ("Array", OPTIONAL_TENSOR)
_LIST_ANNOTATION = "list[Array]"


class Op:
    """One operation on tensors. Called with tensors it runs, by an interpreter, a backend's lowering or its kernel."""

    is_view = False
    """Whether the result is a window on the memory of the first argument, and remembers that."""
    makes_windows = False
    """Whether the kernel only arranges memory: it reads no element."""
    is_linear = False
    """Whether the op is linear in its first argument, the only one with a derivative: tangents go through it."""
    tangent: Callable[..., Any] | None = None
    """The tangent of the result, from that of the first argument, the result and the arguments of the call; most ops
    have none of their own: it is the transpose of their gradient."""
    writes: tuple[int, ...] = ()
    """The positions of the arguments that change."""
    write: Callable[..., None] | None = None
    """What an op that changes a copy of its first array does to that copy: its in-place form does it to the array."""
    in_place_of: Op | None = None
    """The op whose in-place form it is, if it only is that."""
    draws = False
    """Whether the op takes numbers from a generator."""
    fuses = True
    """Whether the derivative may be elementwise, so that a backend computes all gradients in one pass."""
    gradient_in_rows = False
    """Whether the derivative on arrays reads the gradient by rows: one with gaps is made a matrix first, and once."""
    gradients_by_plan: Callable[..., Any] | None = None
    """`(node, gradient's array, its kind, which are needed)`: the arrays of all gradients; None where the device has no
    plan for them together, and each formula runs.
    """
    reads_narrow = False
    """Whether the kernel takes arrays of bfloat16, complex32 and the 8-bit floats as they are."""
    reads = False
    """Whether the result is a Python value: the host looks at elements."""
    decomposition: Callable[..., Any] | None = None
    """The op in other ops, if it is made of some."""
    spelled_out: Callable[[Any], None] | None = None
    """Where the op does what several do in PyTorch: makes of its node, in place, the nodes of these."""
    shape: Callable[..., Any] | None = None
    """The results for arrays without data, where the kernel itself cannot be asked."""
    again: Callable[..., Any] | None = None
    """What a program runs in its place; None: the op itself."""
    axes: Axes | None = None
    """How dimensions of the tensors go into those of the results; None: transforms have a rule for this op, or none."""

    name: str
    kernel: Kernel
    parameters: tuple[str, ...]
    tensor_positions: tuple[int, ...] = ()
    list_position: int | None = None

    def enter(self, name: str) -> None:
        """Take `name` in the table of ops."""
        if name in OPS:
            raise TypeError(f"there is an op called {name!r} already: {OPS[name]!r}; an op's name is its own")
        self.name = self.__name__ = name
        OPS[name] = self

    def __call__(self, *args: Any) -> Any:
        """Run the op on tensors."""
        raise NotImplementedError(f"{self!r} cannot be called")

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def tensors_of(self, args: Any) -> list[Tensor]:
        """The tensors among the arguments of a call, those in lists included."""
        found = [args[position] for position in self.tensor_positions if args[position] is not None]
        return found if self.list_position is None else [*found, *args[self.list_position]]


def tensor_parameters(kernel: Kernel) -> tuple[tuple[str, ...], tuple[int, ...], int | None]:
    """The parameters of a kernel; the positions of those that are arrays; the position of the list of arrays."""
    names = parameter_names(kernel)
    annotations = [str(kernel.__annotations__.get(name, "")) for name in names]
    arrays = tuple(position for position, each in enumerate(annotations) if each in _TENSOR_ANNOTATIONS)
    return names, arrays, next((i for i, each in enumerate(annotations) if each == _LIST_ANNOTATION), None)


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a Python function's parameters; quicker than asking `inspect`."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def name_of_kernel(function: Callable[..., Any]) -> str:
    """The name of an op whose kernel is `function`: kernels that are called from a public function have a mark."""
    return function.__name__.removeprefix("_").removesuffix("_kernel")
