"""`Tensor`: a strided array with the bookkeeping that autograd needs.

The array library supplies memory, strides and views; the ops in `flambeau._ops` supply everything that computes, and
put their methods on this class. What stands here is state: the version counter, the place in the graph, the gradient.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .backend import backend_at
from .device import CPU, device, layout, strided
from .dtype import C_NAMES, DEFAULTS, LEGACY_NAMES, dtype
from .hooks import HookDict, RemovableHandle
from .kind import Kind, kind_of_array
from .methods import TensorMethods
from .modes import THREAD, beside_the_ops
from .node import AccumulateGrad, Edge, Node
from .process.tracebacks import leave_out_library
from .size import SIZES, Size, contiguous_strides
from .slots import SLOTS
from .storage import UntypedStorage, address_of, offset_of, storage_of
from .text.errors import INFERENCE_VERSION
from .version import Counter, DataCounter, hand_out, share_memory

Parts = tuple[Any, Kind, Any]

DEFAULT, NO_GRAD, MULTI_OUTPUT, INFERENCE, CUSTOM_FUNCTION = range(5)
"""How a view came to be: decides which in-place operations on it autograd can follow."""


class View:
    """What a view knows of its origin."""

    __slots__ = ("base", "creation", "version")

    def __init__(self, base: Tensor, version: int, creation: int) -> None:
        self.base = base
        self.version = version
        self.creation = creation


class Extra:
    """What few tensors have: hooks, the node that accumulates, forward-mode tangents, flags."""

    __slots__ = (
        "accumulator", "former_shapes", "has_no_memory", "hooks", "own_version", "post_accumulate", "retains_grad",
        "tangents",
    )  # fmt: skip

    def __init__(self) -> None:
        self.hooks: HookDict | None = None
        self.post_accumulate: HookDict | None = None
        self.accumulator: Callable[[], AccumulateGrad | None] | None = None
        self.retains_grad = False
        self.has_no_memory = False  # of a wrapper subclass: its class has the elements elsewhere
        self.tangents: dict[int, Tensor] | None = None
        self.own_version: int | None = None  # of what detaches an inference tensor outside the mode: it may be changed
        self.former_shapes: set[Any] | None = None  # of a leaf: what was computed from it then has gradients of these


class Tensor(TensorMethods):
    """A multi-dimensional array of one element type that can record how it was computed.

    Make one by `torch.tensor`, `torch.zeros`, `torch.from_numpy` and other functions.

    Args:
        *args: sizes, for a tensor whose elements are not set; or a sequence of numbers, as the old constructor takes
            them.
        **kwargs: `device`, which must be the CPU.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        >>> (x @ x).sum().backward()
        >>> x.grad
        tensor([[ 7., 11.],
                [ 9., 13.]])
    """

    __slots__ = (
        "__dict__",  # users hang attributes on tensors; the dictionary exists only then
        "__weakref__",
        "_array",
        "_counter",
        "_extra",
        "_grad",
        "_grad_fn",
        "_kind",
        "_output_nr",
        "_requires_grad",
        "_view",
    )
    if TYPE_CHECKING:  # not for users who ask for the class's annotations
        _array: Any
        _kind: Kind
        _counter: Counter | None  # None: an inference tensor
        _requires_grad: bool
        _grad_fn: Node | None
        _output_nr: int
        _grad: Tensor | None
        _view: View | None
        _extra: Extra | None

        __torch_function__: ClassVar[Any]  # from _dispatch/public/overrides.py

        # What a wrapper (`func/_level.py`) has:
        def _before_change(self) -> Tensor: ...
        def _filled_alike(self, shape: Sequence[int], kind: Any, value: Any) -> Tensor: ...
        def _become(self, other: Tensor) -> None: ...
        def _resize(self, shape: tuple[int, ...]) -> None: ...
        def _on_values(self, function: Callable[..., Any], *tensors: Tensor) -> Any: ...
        def _one_by_one(self, function: Callable[..., Any], args: Sequence[Any], options: Any) -> Any: ...
        def _custom_function(self, function: Any, args: Sequence[Any]) -> Any: ...
        def _refuse_reading(self) -> None: ...
        @property
        def value(self) -> Tensor: ...

    __module__ = "flambeau"  # where users find it, and what its class prints
    _is_wrapper = False  # whether `vmap`, `functionalize` or DTensor has wrapped another tensor in it: its `value`
    volatile = False  # the flag of PyTorch's first years: see autograd/variable.py
    __array_priority__ = 1000  # NumPy's operators defer to ours

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return SLOTS.legacy_tensor(cls, *args, **kwargs)

    # ----- construction from parts ------------------------------------------------------------------------------

    @staticmethod
    def _from_parts(parts: Parts, of_type: type | None = None) -> Tensor:
        """A tensor outside any graph, over a given array, kind and version counter."""
        tensor: Tensor = new(of_type or parts[1].tensor_type)
        tensor._array, tensor._kind, tensor._counter = parts
        tensor._requires_grad = False
        tensor._grad_fn = None
        tensor._output_nr = 0
        tensor._grad = None
        tensor._view = None
        tensor._extra = None
        return tensor

    def _parts(self) -> Parts:
        return self._array, self._kind, self._counter

    # ----- what it holds ----------------------------------------------------------------------------------------

    @property
    def dtype(self) -> dtype:
        return self._kind.dtype

    @property
    def device(self) -> device:
        return self._kind.shown

    @property
    def layout(self) -> layout:
        return strided

    @property
    def shape(self) -> Size:
        return SIZES[self._array.shape]

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dimension.

        Args:
            dim (int, optional): which dimension; None means all.

        Returns:
            Size, or int.

        Example:
            >>> x = torch.zeros(2, 3)
            >>> x.size(), x.size(1)
            (torch.Size([2, 3]), 3)
        """
        if dim is None:
            return SIZES[self._array.shape]
        shape = self._array.shape
        try:
            return shape[dim]
        except IndexError:
            raise IndexError(_dimension_message(dim, len(shape))) from None

    def stride(self, dim: int | None = None) -> Any:
        """The steps in elements from one item to the next along each dimension, or along one.

        Args:
            dim (int, optional): which dimension; None means all.

        Returns:
            tuple of ints, or int.

        Example:
            >>> x = torch.zeros(2, 3)
            >>> x.stride(), x.T.stride(), x.stride(0)
            ((3, 1), (1, 3), 3)
        """
        array = self._array
        item = array.itemsize
        if array.size or any(array.strides):
            strides = in_elements(array.strides, item)
        else:  # the array library does not keep the strides of arrays without elements
            strides = contiguous_strides(array.shape)
        if dim is None:
            return strides
        try:
            return strides[dim]
        except IndexError:
            raise IndexError(_dimension_message(dim, len(strides))) from None

    @property
    def ndim(self) -> int:
        count: int = self._array.ndim
        return count

    def dim(self) -> int:
        """The number of dimensions.

        Returns:
            int: the number.

        Example:
            >>> torch.zeros(2, 3).dim()
            2
        """
        count: int = self._array.ndim
        return count

    ndimension = dim

    def numel(self) -> int:
        """The number of elements.

        Returns:
            int: the number.

        Example:
            >>> torch.zeros(2, 3).nelement()
            6
        """
        count: int = self._array.size
        return count

    nelement = numel

    @property
    def itemsize(self) -> int:
        return self._kind.dtype.itemsize

    def element_size(self) -> int:
        """Bytes of one element.

        Returns:
            int: the number of bytes.

        Example:
            >>> torch.zeros(2).element_size()
            4
        """
        return self._kind.dtype.itemsize

    @property
    def nbytes(self) -> int:
        count: int = self._array.size * self._kind.dtype.itemsize
        return count

    def data_ptr(self) -> int:
        """The address of the first element.

        Returns:
            int: the address.

        Example:
            >>> x = torch.zeros(4)
            >>> x[1:].data_ptr() - x.data_ptr()
            4
        """
        if self._array.size == 0 or self._kind.dataless or (self._extra is not None and self._extra.has_no_memory):
            return 0
        beside_the_ops()
        hand_out(self._counter)
        return address_of(self._array)

    def storage_offset(self) -> int:
        """Elements between the start of the storage and the first element.

        Returns:
            int: the number of elements.

        Example:
            >>> torch.zeros(4)[1:].storage_offset()
            1
        """
        if interpreters := THREAD.modes.interpreters:
            interpreters[-1].reads_offset(self)
        return offset_of(self._array)

    def untyped_storage(self) -> UntypedStorage:
        """The memory under this tensor and its views.

        Returns:
            UntypedStorage: the storage.

        Example:
            >>> torch.zeros(2, 3).untyped_storage().nbytes()
            24
        """
        beside_the_ops()
        hand_out(self._counter)
        return storage_of(self._array, self._kind.device)

    @property
    def is_cpu(self) -> bool:
        return self._kind.device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        return self._kind.device.type == "cuda"

    @property
    def is_meta(self) -> bool:
        return self._kind.device.type == "meta"

    if TYPE_CHECKING:  # sparse tensors find out

        @property
        def is_sparse(self) -> bool: ...
        @property
        def is_sparse_csr(self) -> bool: ...

    else:
        is_sparse = is_sparse_csr = False
    is_quantized = is_nested = is_mps = is_xla = is_xpu = is_mkldnn = is_ipu = False
    is_vulkan = is_maia = is_mtia = False

    @property
    def names(self) -> tuple[None, ...]:
        return (None,) * self.dim()

    def get_device(self) -> int:
        """The ordinal of the accelerator, -1 on the CPU.

        Returns:
            int: the ordinal.

        Example:
            >>> torch.zeros(2).get_device()
            -1
        """
        index = self._kind.device.index
        return -1 if index is None else index

    # ----- its place in the graph -------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        view = self._view
        if self._requires_grad or view is None:
            return self._requires_grad
        base = view.base
        return base._requires_grad or (base._view is not None and base.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"requires_grad must be a bool, not {type(value).__name__}")
        if self._grad_fn is not None:
            raise RuntimeError(_CHANGES_FLAG)
        self._set_requires_grad(value, "only Tensors of floating point and complex dtype can require gradients")

    def _set_requires_grad(self, value: bool, complaint: str) -> None:
        if value:
            if not self._kind.differentiable:
                raise RuntimeError(
                    f"{complaint}: this one is {self._kind.dtype}. Convert it first, for example with .float()"
                )
            if self._counter is None and not THREAD.modes.inference:
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed. Make a "
                    ".clone() of it first: that is a normal tensor."
                )
        if self._grad_fn is None:
            self._requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad` and return the tensor.

        Args:
            requires_grad (bool): whether operations on it are recorded. Default: `True`.

        Returns:
            Tensor: the tensor itself.

        Example:
            >>> torch.zeros(2).requires_grad_()
            tensor([0., 0.], requires_grad=True)
        """
        if type(requires_grad) not in _FLAGS:
            kind = type(requires_grad).__name__
            raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {kind}")
        if not requires_grad and self._grad_fn is not None:
            raise RuntimeError(_CHANGES_FLAG)
        self._set_requires_grad(bool(requires_grad), "only Tensors of floating point dtype can require gradients")
        return self

    @property
    def is_leaf(self) -> bool:
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Node | None:
        view = self._view
        if view is not None:
            counter = self._counter
            if counter is not None and view.version != counter[0] and (self._grad_fn or view.base.requires_grad):
                SLOTS.regenerate_view_history(self, view)
        return self._grad_fn

    @property
    def creator(self) -> Node | None:
        """The name that `grad_fn` had in the first releases of PyTorch."""
        return self.grad_fn

    @property
    def output_nr(self) -> int:
        return self._output_nr

    def _edge(self) -> Edge:
        """Where the gradient of this tensor goes; None if it needs none."""
        if self._view is None:
            if not self._requires_grad:
                return None
            return self._grad_fn or self, self._output_nr
        grad_fn = self.grad_fn if self.requires_grad else None
        if grad_fn is not None:
            return grad_fn, self._output_nr
        # Where only the base requires gradients the view was made without recording: no gradient leads back from it.
        return (self, 0) if self._requires_grad else None

    def _accumulator(self) -> AccumulateGrad:
        extra = self._get_extra()
        node = extra.accumulator() if extra.accumulator is not None else None
        if node is None:
            node = AccumulateGrad(self)
            extra.accumulator = weakref.ref(node)
        return node

    def _will_change_shape(self) -> None:
        """Remember the shape of a leaf: graphs that used it before compute gradients of that."""
        if self._grad_fn is None and self.requires_grad:
            extra = self._get_extra()
            extra.former_shapes = {*(extra.former_shapes or ()), self._array.shape}

    def _get_extra(self) -> Extra:
        if self._extra is None:
            self._extra = Extra()
        return self._extra

    def _let_changes_count(self) -> None:
        """Let an inference tensor that was detached outside inference mode be changed there, as in PyTorch."""
        if not THREAD.modes.inference:
            self._get_extra().own_version = 0

    @property
    def _version(self) -> int:
        if self._counter is None:
            if self._extra is None or self._extra.own_version is None:
                raise RuntimeError(INFERENCE_VERSION)
            return self._extra.own_version
        version: int = self._counter[0]
        return version

    @property
    def _base(self) -> Tensor | None:
        return None if self._view is None else self._view.base

    def _is_view(self) -> bool:
        return self._view is not None

    def is_inference(self) -> bool:
        """Whether the tensor was made in inference mode.

        Returns:
            bool: whether it was.

        Example:
            >>> torch.zeros(2).is_inference()
            False
        """
        return self._counter is None

    @property
    def data(self) -> Tensor:
        """A tensor on this memory outside the graph, with a version counter of its own."""
        counter = None if self._counter is None else DataCounter(self._counter)
        plain = Tensor._from_parts((self._array, self._kind, counter))
        if counter is None:
            plain._let_changes_count()
        return plain if type(self) in PLAIN_TYPES else SLOTS.retyped_like(self, plain)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self.requires_grad and not value._kind.differentiable:
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex dtype, not "
                f"{value.dtype}"
            )
        if value.layout is not self.layout:
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor "
                f"type: layouts {self.layout} and {value.layout}"
            )
        if value._array.shape != self._array.shape:
            self._will_change_shape()
        self._array = value._array
        self._kind = value._kind
        share_memory(self._counter, value._counter)

    @property
    def grad(self) -> Tensor | None:
        if self._grad is None and self._grad_fn is not None and not (self._extra and self._extra.retains_grad):
            import warnings

            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated "
                "for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor.",
                UserWarning,
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
                )
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if value._kind is not self._kind:
                if value.dtype is not self.dtype:
                    raise RuntimeError(
                        f"assigned grad has data of a different type: attempting to assign a gradient with dtype "
                        f"'{C_NAMES[value.dtype.name]}' to a tensor with grad_dtype "
                        f"'{LEGACY_NAMES[self.dtype]}'. Convert it first, as in grad.to({self.dtype})"
                    )
                if value._kind.device is not self._kind.device:
                    raise RuntimeError(
                        f"assigned grad has data located on a different device: {self.device} against {value.device}"
                    )
            if value._array.shape != self._array.shape:
                raise RuntimeError(
                    f"assigned grad has data of a different size: attempting to assign a gradient of size "
                    f"'{list(value._array.shape)}' to a tensor of size '{list(self._array.shape)}'. Please ensure "
                    "that the gradient and the tensor are the same size"
                )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def retains_grad(self) -> bool:
        return self._extra is not None and self._extra.retains_grad

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf tensor in `.grad`.

        Example:
            >>> x = torch.ones(2, requires_grad=True)
            >>> y = x * 2
            >>> y.retain_grad()
            >>> y.sum().backward()
            >>> y.grad
            tensor([1., 1.])
        """
        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self._grad_fn is None and (self._view is None or self._view.creation != DEFAULT):
            return  # a leaf, or a view that was made without recording, of which nothing asks for a node
        node = self.grad_fn  # of a view whose memory has been changed it is made now
        if node is None or self.retains_grad:
            return
        self._get_extra().retains_grad = True
        node.all_hooks.retain[self._output_nr] = weakref.ref(self)

    def register_hook(self, hook: Callable[[Tensor], Any]) -> RemovableHandle:
        """Call `hook(grad)` whenever this tensor's gradient is computed; a returned tensor replaces it.

        Args:
            hook (Callable): called with the gradient; what it returns, unless that is None, replaces it.

        Returns:
            RemovableHandle: a handle whose `remove()` takes the hook off again.

        Example:
            >>> x = torch.tensor([1.0], requires_grad=True)
            >>> handle = x.register_hook(lambda grad: grad * 10)
            >>> (x * 2).sum().backward()
            >>> x.grad
            tensor([20.])
        """
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        node = self.grad_fn
        if node is None:
            extra = self._get_extra()
            if extra.hooks is None:
                extra.hooks = HookDict()
            return RemovableHandle(extra.hooks, hook)
        return RemovableHandle(node.all_hooks.tensor.setdefault(self._output_nr, HookDict()), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook(tensor)` after a gradient was added to this leaf's `.grad`.

        Args:
            hook (Callable): called with the tensor.

        Returns:
            RemovableHandle: a handle whose `remove()` takes the hook off again.

        Example:
            >>> x = torch.tensor([1.0], requires_grad=True)
            >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
            >>> (x * 2).sum().backward()
            tensor([2.])
        """
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.grad_fn is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        extra = self._get_extra()
        if extra.post_accumulate is None:
            extra.post_accumulate = HookDict()
        return RemovableHandle(extra.post_accumulate, hook)

    @property
    def _backward_hooks(self) -> HookDict | None:
        return None if self._extra is None else self._extra.hooks

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradients of this tensor to the `.grad` of the leaves that it was computed from.

        Args:
            gradient (Tensor, optional): the weight of each element, of this tensor's shape; None is right for one
                element.
            retain_graph (bool, optional): whether the graph stays for another backward pass; None means as
                `create_graph`.
            create_graph (bool): whether the gradients can be differentiated again. Default: `False`.
            inputs: the leaves whose `.grad` changes; None means all.

        Raises:
            RuntimeError: the tensor has more than one element and no `gradient`, or does not require gradients.

        Example:
            >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
            >>> (x**2).sum().backward()
            >>> x.grad
            tensor([2., 4.])
        """
        try:
            if gradient is None and inputs is None and create_graph is False:
                SLOTS.backward_from(self, retain_graph)
            else:
                SLOTS.backward((self,), gradient, retain_graph, create_graph, inputs=inputs)
        except Exception as error:
            leave_out_library(error)
            raise

    # ----- Python's own protocols -------------------------------------------------------------------------------

    __hash__ = object.__hash__  # by identity, although == compares elements; the engine's dictionaries rely on it

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__torch_function__" in vars(cls):
            SLOTS.ask_for_members(cls)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        prefix = "tensor(" if type(self) in PLAIN_TYPES else f"{type(self).__name__}("
        return SLOTS.tensor_repr(self, default_dtype=DEFAULTS.float, prefix=prefix, contents=tensor_contents)

    def _repr_html_(self) -> str | None:
        """What notebooks show; a subclass says for itself how it is shown."""
        return SLOTS.tensor_html(self) if type(self) in PLAIN_TYPES else None

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return len(self._array)


_FLAGS = frozenset((bool,))
_CHANGES_FLAG = (
    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph "
    "that doesn't require differentiation use var_no_grad = var.detach()."
)
new: Any = object.__new__
"""Makes an instance without `__init__`: ops fill the slots themselves."""

PLAIN_TYPES: set[type] = {Tensor}
"""Tensor classes whose ops run directly, with no call of a `__torch_function__`."""

DIRECT_TYPES: set[type] = {Tensor}
"""Tensor classes for which functions need not ask whether anybody overrides them. It is empty as long as a mode that
sees every function is entered in some thread: then all of them have to look closer."""


def run_directly(cls: type) -> None:
    """Make a class of tensors one of the plain ones."""
    PLAIN_TYPES.add(cls)
    if DIRECT_TYPES:
        DIRECT_TYPES.add(cls)


def wrap(array: Any, place: device) -> Tensor:
    """A new tensor outside any graph over a kernel's result, which may be a NumPy scalar."""
    if type(array) is not np.ndarray or place is not CPU:
        array = backend_at(place).asarray(array)
    return Tensor._from_parts((array, kind_of_array(array.dtype, place), new_counter()))


@functools.lru_cache(maxsize=1024)
def in_elements(strides: tuple[int, ...], item: int) -> tuple[int, ...]:
    """Strides that count bytes, in elements of so many."""
    return tuple([step // item for step in strides])


def edges_of(tensors: Sequence[Tensor]) -> list[Edge]:
    """Where the gradients of several tensors go: `Tensor._edge` of each, in place but for views."""
    return [
        each._edge()
        if each._view is not None
        else (each._grad_fn or each, each._output_nr)
        if each._requires_grad
        else None
        for each in tensors
    ]


def new_counter() -> Counter | None:
    """The version counter of a new tensor; inference tensors have none."""
    return None if THREAD.modes.inference else [0, None]


def _dimension_message(dim: int, ndim: int) -> str:
    low, high = (-ndim, ndim - 1) if ndim else (-1, 0)
    return f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})"


Kind.tensor_type = Tensor
Kind.tensor_from_parts = staticmethod(Tensor._from_parts)  # type: ignore[method-assign]  # declared there
