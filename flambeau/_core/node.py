"""The recorded graph: a `Node` for each differentiable operation, and what it saved for its derivative.

An edge leads from a node to where the gradient of one of its inputs goes: to the node that made this input, with the
number of the output that it was, or, where the input is a leaf, to the leaf tensor itself. `None` marks an input that
needs no gradient. No edge or saved value leads from a node to its own outputs, so that reference counting alone frees a
dropped graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar

from .backend import LARGE
from .hooks import NodeHooks, RemovableHandle
from .kind import Kind
from .modes import THREAD
from .process.caller import Place, calling_place, describe_place
from .size import Size
from .slots import SLOTS
from .text.errors import GRAPH_FREED, INFERENCE_SAVED, KEEP_GRAPH

Formula = Callable[..., Any]
if TYPE_CHECKING:
    Edge = tuple["Node" | "tensors.Tensor", int] | None
else:  # what annotations mean at run time, when tensors are not there yet
    Edge = tuple[Any, int] | None

next_sequence_number = count().__next__

new_node: Any = object.__new__
"""Makes a node without `__init__`; `initialise` fills it."""


class InputMetadata:
    """Shape, dtype and device of a gradient; of what is no tensor, dtype and device are None."""

    __slots__ = ("device", "dtype", "shape")

    is_nested_tensor: ClassVar[bool] = False
    is_cpp_nested_tensor: ClassVar[bool] = False

    def __init__(self, shape: Size, dtype: Any, device: Any) -> None:
        self.shape, self.dtype, self.device = shape, dtype, device


class Node:
    """One recorded operation. Subclasses know their derivative: `apply` maps output gradients to input gradients.

    `outputs` holds shape and kind of each output: what an arriving gradient is checked against.

    Example:
        >>> y = torch.ones(1, requires_grad=True) * 2
        >>> y.grad_fn.name(), y.grad_fn.next_functions[0][0].name()
        ('MulBackward0', 'torch::autograd::AccumulateGrad')
    """

    __slots__ = ("__weakref__", "_hooks", "_metadata", "_shown", "code", "edges", "instruction", "outputs", "sequence")

    prefix: ClassVar[str] = ""  # nodes that come from no op are named with their namespace
    holds: ClassVar[bool] = True
    """Whether there may be something to `release`."""
    makes_gradients: bool = False
    """Whether what `apply` returns is new, or seen by nobody else: a leaf may take it as its own gradient."""
    only_casts: ClassVar[bool] = False
    """Whether the node hands its one gradient on as it is, for the engine to cast."""
    may_be_absent: ClassVar[bool] = False
    """Whether the node stands for a graph of which only a part may lie behind the roots."""
    edges: tuple[Edge, ...]
    outputs: tuple[tuple[tuple[int, ...], Kind], ...]
    sequence: int
    code: CodeType | None
    """The user's code that recorded the node, and the offset of the `instruction` in it: see `recorded_at`."""
    instruction: int
    _hooks: NodeHooks | None
    _metadata: dict[str, Any] | None
    _shown: tuple[tuple[Node | None, int], ...]  # unset until somebody asks for `next_functions`

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        """Gradients of the inputs, one for each edge, from the gradients of the outputs."""
        raise NotImplementedError(f"{type(self).__name__} has no derivative")

    def release(self) -> None:
        """Drop what was saved: backward has passed and nobody asked to keep the graph."""

    def name(self) -> str:
        """The name of the operation's derivative, as PyTorch calls it."""
        return self.prefix + type(self).__name__

    def _repr_svg_(self) -> str:
        """What notebooks show: the graph behind this node as a picture."""
        from .text.graph_svg import graph_svg

        return graph_svg(self)

    def spell_out(self, even_now: bool = False) -> None:
        """Become the nodes that PyTorch has, where this one stands for several: somebody looks."""

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes on this node."""
        if self._metadata is None:
            self._metadata = {}
        return self._metadata

    @property
    def _input_metadata(self) -> list[InputMetadata]:
        """What gradients this node is given: one entry for each tensor that it has made."""
        return [
            InputMetadata(Size(shape), getattr(kind, "dtype", None), getattr(kind, "device", None))
            for shape, kind in self.outputs
        ]

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that receive this node's results, each with an output number."""
        self.spell_out()
        # Kept, because a leaf does not hold its `AccumulateGrad`: its hooks last as long as the graph.
        self._shown = tuple((None, 0) if edge is None else (as_node(edge[0]), edge[1]) for edge in self.edges)
        return self._shown

    @property
    def all_hooks(self) -> NodeHooks:
        """The node's hooks, made on first use."""
        if self._hooks is None:
            self._hooks = NodeHooks()
        return self._hooks

    def register_hook(self, fn: Callable[[Any, Any], Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran; a returned tuple replaces `grad_inputs`."""
        self.spell_out()
        return RemovableHandle(self.all_hooks.post, fn)

    def register_prehook(self, fn: Callable[[Any], Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs; a returned tuple replaces `grad_outputs`."""
        return RemovableHandle(self.all_hooks.pre, fn)

    def _sequence_nr(self) -> int:
        return self.sequence

    def __lt__(self, other: object) -> bool:
        """Nodes with one number run in any order: one that a node becomes may have that of a view's new history."""
        return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"

    def __call__(self, *grads: Any) -> Any:
        self.spell_out()
        results = self.apply(list(grads))
        return results[0] if len(results) == 1 else tuple(results)


def recorded_at(node: Node) -> Place | None:
    """Where in the user's program a node was recorded. No attribute: users name those of `ctx`."""
    return None if node.code is None else (node.code, node.instruction)


def as_node(target: Node | tensors.Tensor) -> Node:
    """The node at the end of an edge; for a leaf tensor its `AccumulateGrad`, one object as long as anyone holds it."""
    return target if isinstance(target, Node) else target._accumulator()


def _tensor_of_number(value: Any) -> tensors.Tensor:
    return SLOTS.tensor_of_number(value)


class _Special:
    """What few saved tensors have: a hook's packed form, the leaf that it stands for, tangents."""

    __slots__ = ("forward", "leaf", "packed", "unpack")

    def __init__(self) -> None:
        self.unpack: Callable[[Any], Any] | None = None
        self.packed: Any = None
        self.leaf: tensors.Tensor | None = None
        self.forward: Any = None


def _as_it_is(tensor: Any) -> Any:
    return tensor


class SavedTensor:
    """A tensor kept for a derivative, with the version that the derivative expects.

    A leaf is kept as it is. Any other tensor is kept as its parts: were it kept itself, a later in-place operation
    could make it the result of a node that leads back here, and the cycle would never be freed.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> y = x.exp()
        >>> y.grad_fn._saved_result is y
        False
    """

    __slots__ = ("counter", "grad_fn", "output_nr", "special", "tensor", "version")

    counter: Any
    version: int
    output_nr: int
    grad_fn: Any
    tensor: Any
    special: _Special | None

    def __init__(self) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden: ops make them, by `save`")

    def _specials(self) -> _Special:
        if self.special is None:
            self.special = _Special()
        return self.special

    def _pack(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any], owner: Node | None) -> None:
        tensor = self._rebuild(owner) if self.grad_fn is not OWNER else self.tensor[1].tensor_from_parts(self.tensor)
        modes = THREAD.modes
        before = self.counter[0]
        special = self._specials()
        hooks, modes.saved_hooks = modes.saved_hooks, []  # what the hook itself computes is not packed
        grad, modes.grad = modes.grad, False
        modes.refresh()
        try:
            special.packed = pack(tensor)
        finally:
            modes.saved_hooks = hooks
            modes.grad = grad
            modes.refresh()  # who looks on inside the hook has refreshed them without the hooks
        if self.counter[0] != before:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. The tensor that a pack hook receives is in "
                "use elsewhere: let the hook work on a .clone()."
            )
        special.unpack = unpack
        # A leaf that requires gradients stays the place where the gradient of what is unpacked goes.
        special.leaf = self.tensor if self.grad_fn is None and self.tensor.requires_grad else None
        self.tensor = None

    def register_hooks(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        """Let `pack_hook` store the tensor, and `unpack_hook` bring it back when the derivative needs it."""
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise TypeError("register_hooks(): pack_hook and unpack_hook must be callable")
        if self.special is not None and self.special.unpack is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Only one pair of hooks is "
                "allowed at a time: remove the other one first."
            )
        if self.tensor is None:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed. " + KEEP_GRAPH)
        self._pack(pack_hook, unpack_hook, None)

    def unpack(self, owner: Node) -> tensors.Tensor:
        """The tensor as it was saved; an error if it has changed since, or is gone."""
        if self.tensor is None:
            return self._unpack_with_hook(owner)
        if self.counter[0] != self.version:
            self._complain_of_change(owner)
        return self.tensor if self.grad_fn is None else self._rebuild(owner)

    def array_of(self, kind: Kind) -> Any:
        """The array of a plain tensor of `kind` that is as it was saved; None: `for_formula` has to look closer."""
        parts = self.tensor
        if parts is None or self.special is not None or self.counter[0] != self.version:
            return None
        if self.grad_fn is None:
            return parts._array if type(parts) in tensors.PLAIN_TYPES and parts._kind is kind else None
        return parts[0] if parts[1] is kind else None

    def array_on(self, place: Any) -> Any:
        """The array of a plain tensor of any dtype on a device, in the same way."""
        parts = self.tensor
        if parts is None or self.special is not None or self.counter[0] != self.version:
            return None
        if self.grad_fn is not None:
            array, kind, _ = parts
        elif type(parts) in tensors.PLAIN_TYPES:
            array, kind = parts._array, parts._kind
        else:
            return None
        return array if kind.device is place and not kind.indirect else None

    def for_formula(self, owner: Node) -> tensors.Tensor:
        """The saved tensor for a formula, without its history where the formula's ops are not recorded."""
        parts = self.tensor
        if parts is None or self.counter[0] != self.version:
            return self.unpack(owner)  # says what is wrong
        tensor: tensors.Tensor
        if self.grad_fn is None:
            tensor = parts
            return tensor
        if self.special is None and not THREAD.modes.grad:
            tensor = parts[1].tensor_from_parts(parts)
            return tensor
        return self._rebuild(owner)

    def _unpack_with_hook(self, owner: Node) -> tensors.Tensor:
        from .tensor import Tensor

        special = self.special
        if special is None or special.unpack is None:
            raise RuntimeError(GRAPH_FREED + forward_line(owner))
        tensor = special.unpack(special.packed)
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got {type(tensor).__name__}"
            )
        if hasattr(type(tensor), "__torch_dispatch__"):
            result = tensor.detach()
        else:
            result = tensor._kind.tensor_from_parts(tensor._parts())
        grad_fn = self._made_by(owner)
        if grad_fn is not None:
            result._requires_grad = True
            result._grad_fn = grad_fn
            result._output_nr = self.output_nr
        elif special.leaf is not None:
            result._requires_grad = True
            result._grad_fn = SameLeaf(special.leaf)
        return result

    def _made_by(self, owner: Node | None) -> Node | None:
        """The node that made the tensor: for a result that of its owner, unless that changed a view in place."""
        grad_fn = self.grad_fn
        if grad_fn is None or isinstance(grad_fn, Node):
            return grad_fn
        return owner if grad_fn is OWNER else grad_fn.node() or owner

    def _rebuild(self, owner: Node | None) -> tensors.Tensor:
        grad_fn = self.grad_fn
        tensor: tensors.Tensor
        if grad_fn is None:
            tensor = self.tensor
            return tensor
        tensor = self.tensor[1].tensor_from_parts(self.tensor)
        tensor._requires_grad = True
        tensor._grad_fn = grad_fn if isinstance(grad_fn, Node) else self._made_by(owner)
        tensor._output_nr = self.output_nr
        special = self.special
        if special is not None and special.forward is not None and special.forward.tangents:
            tensor._get_extra().tangents = special.forward.tangents
        return tensor

    def _complain_of_change(self, owner: Node) -> None:
        owner.spell_out(even_now=True)
        tensor = self._rebuild(owner)
        made_by = tensor._grad_fn
        origin = f", which is output {self.output_nr} of {made_by.name()}," if made_by is not None else ""
        changed = self.counter[1]
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{tensor._kind.legacy_name} {list(tensor._array.shape)}]{origin} is at version {self.counter[0]}; "
            f"expected version {self.version} instead.\n"
            f"  saved for {owner.name()} at {describe_place(recorded_at(owner))}\n"
            f"  changed in place at {describe_place(changed)}\n"
            "  Fix: use the out-of-place form there (y = y + 1, not y += 1), or work on a .clone()."
        )

    def release(self) -> None:
        """Forget the tensor."""
        self.tensor = None
        self.special = None


def save_plainly(tensor: tensors.Tensor, owner: Node | None = None) -> SavedTensor:
    """Keep a tensor for a derivative; `owner`: it is an output of the node that keeps it.

    A function: as `__init__` it would cost a call more, several times for every op that is recorded.
    """
    counter = tensor._counter
    if counter is None:
        raise RuntimeError(INFERENCE_SAVED)
    saved: SavedTensor = new_node(SavedTensor)
    saved.counter = counter
    saved.version = counter[0]
    saved.output_nr = tensor._output_nr
    saved.special = None
    if owner is not None and tensor._kind.differentiable:
        saved.tensor = (tensor._array, tensor._kind, counter)
        saved.grad_fn = OWNER
    else:
        grad_fn = saved.grad_fn = tensor._grad_fn if tensor._view is None else tensor.grad_fn
        saved.tensor = tensor if grad_fn is None else (tensor._array, tensor._kind, counter)
    return saved


def save(tensor: tensors.Tensor, owner: Node | None = None) -> SavedTensor:
    """Keep a tensor for a derivative, whatever the mode: saved-tensor hooks may pack it, and its tangent goes along."""
    saved = save_plainly(tensor, owner)
    modes = THREAD.modes
    if not modes.plain:
        if modes.forward_level >= 0:
            # An output gets its tangent only after it was saved.
            saved._specials().forward = tensor._get_extra()
        if modes.saved_hooks:
            saved._pack(*modes.saved_hooks[-1], owner)
        elif saved.grad_fn is not None and hasattr(type(tensor), "__torch_dispatch__"):
            # Its parts are not what its class makes of it: keep the tensor, outside the graph.
            special = saved._specials()
            special.packed, special.unpack, special.leaf = tensor.detach(), _as_it_is, None
            saved.tensor = None
    return saved


OWNER: Any = object()
"""Stands for the node that holds a saved output: naming the node itself would make a cycle."""

FREED_NUMBER: SavedTensor = object.__new__(SavedTensor)
FREED_NUMBER.release()


def forward_line(owner: Node) -> str:
    """For a message: the line of the forward pass that recorded `owner`."""
    return f"\n  {owner.name()} was recorded at {describe_place(recorded_at(owner))}" if owner.code is not None else ""


class OpNode(Node):
    """The node of an op whose derivative is given by formulas, one for each differentiable input.

    `formulas[i]` is the formula of edge i with the names of the saved values that it takes; `saved_names` are all of
    these names. What is saved under `name` is the slot of that name; `_saved_<name>` shows it.
    """

    __slots__ = ()
    makes_gradients = True
    formulas: ClassVar[tuple[tuple[Formula, tuple[str, ...]] | None, ...]] = ()
    joint: ClassVar[tuple[Formula, tuple[str, ...]] | None] = None
    saved_names: ClassVar[tuple[str, ...]] = ()
    held_names: ClassVar[tuple[str, ...]] = ()
    """The names, of `saved_names`, that may hold tensors: the rest are sizes and dtypes."""
    list_input: ClassVar[int | None] = None
    op: ClassVar[Any] = None
    derivative: ClassVar[Any]
    """The derivative as one op, once it is asked for."""
    fusions: ClassVar[dict[Any, Any]]
    """The derivatives in one pass that were made of the formulas so far."""

    def spell_out(self, even_now: bool = False) -> None:
        # A backward pass that is running has counted the edges as they are: they stay, unless it ends in an error.
        spelled_out = getattr(self.op, "spelled_out", None)
        if spelled_out is not None and (even_now or THREAD.modes.backward_pass is None):
            spelled_out(self)

    def saved(self) -> dict[str, Any]:
        """The saved values by name, tensors unpacked and checked."""
        return {name: self._value(name) for name in self.saved_names}

    def apply(
        self, grads: list[Any], edges: Sequence[Any] | None = None, values: dict[str, Any] | None = None
    ) -> Sequence[Any]:
        """The gradients of the inputs; of those alone that have an edge in `edges`, if that is given.

        `values`: what was saved, where it is unpacked already. Hooks see each saved tensor unpacked once.
        """
        if edges is None:
            edges = self.edges
        if self.joint is not None:
            formula, names = self.joint
            needed = tuple([edge is not None for edge in edges])
            together: Sequence[Any] = formula(grads, needed, *[self._value(name) for name in names])
            return together
        grad = grads[0]
        if grad is None:
            return [None] * len(edges)
        if self.list_input is not None:
            return self._apply_to_list(grad, edges)
        backend = grad._kind.backend
        large = values is None and (grad._array.size >= LARGE or backend.costs_per_call)
        if large and (in_one_pass := backend.in_one_pass) is not None:
            values = self.saved()
            done: Sequence[Any] | None = in_one_pass(self, grad, values, edges)
            if done is not None:
                return done
        entries = [None if edge is None else entry for entry, edge in zip(self.formulas, edges, strict=True)]
        if not any(edges):
            return self.without_edges()
        if values is None:
            values = {name: self._value(name) for entry in entries if entry is not None for name in entry[1]}
        results: list[Any] = []
        for entry in entries:  # a loop, so that debuggers step from here into the formula
            if entry is None:
                results.append(None)
            else:
                formula, names = entry
                results.append(formula(grad, *[values[name] for name in names]))
        return results

    def _value(self, name: str) -> Any:
        """What was saved as `name`, tensors unpacked and checked."""
        value = getattr(self, name)
        if type(value) is SavedTensor:
            return value.unpack(self)
        if type(value) is list:
            return [item.unpack(self) if type(item) is SavedTensor else item for item in value]
        return value

    def without_edges(self) -> Sequence[Any]:
        """What `apply` does where no gradient leads on: what was saved is unpacked all the same."""
        for name in self.held_names:
            self._value(name)
        return [None] * len(self.edges)

    def check_saved(self, edges: Sequence[Any]) -> None:
        """Unpack what only the formulas of edges that `edges` leaves out take: it is checked, too, as in PyTorch."""
        if self.joint is not None or self.list_input is not None:
            return
        taken = {name for entry, edge in zip(self.formulas, edges, strict=True) if entry and edge for name in entry[1]}
        for name in self.held_names:
            if name not in taken:
                self._value(name)

    def _apply_to_list(self, grad: Any, edges: Sequence[Any]) -> list[Any]:
        # One input is a list of tensors: its formula gives a list, and it has an edge for each of them.
        spread = len(edges) - len(self.formulas) + 1
        results: list[Any] = []
        for number, entry in enumerate(self.formulas):
            width = spread if number == self.list_input else 1
            if entry is None or edges[len(results) : len(results) + width].count(None) == width:
                results += [None] * width
                continue
            result = entry[0](grad, *[self._value(name) for name in entry[1]])
            results += result if number == self.list_input else [result]
        return results

    def release(self) -> None:
        for name in self.held_names:
            value = getattr(self, name)
            if type(value) is SavedTensor:
                value.tensor = value.special = None
            elif type(value) is list:
                for item in value:
                    if type(item) is SavedTensor:
                        item.release()
            elif (type(value) is float or type(value) is int) and name in self.op.tensor_names:
                setattr(self, name, FREED_NUMBER)  # the number in x * 2 counts as a saved tensor

    def pack_saved(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        """Hand the saved tensors to hooks that did not see them when they were saved."""
        for name in self.held_names:
            value = getattr(self, name)
            for item in value if type(value) is list else [value]:
                if type(item) is SavedTensor:
                    item._pack(pack, unpack, self)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith(("_saved_", "_raw_saved_")):
            self.spell_out()
        if attribute.startswith("_saved_") and (name := attribute[7:]) in self.saved_names:
            value = getattr(self, name)
            if type(value) is list:
                return tuple(item.unpack(self) if type(item) is SavedTensor else item for item in value)
            if isinstance(value, (bool, int, float, complex)) and name in self.op.differentiable_names():
                return _tensor_of_number(value)  # a number that stood for a tensor is shown as one
            return value.unpack(self) if type(value) is SavedTensor else value
        if attribute.startswith("_raw_saved_") and (name := attribute[11:]) in self.saved_names:
            value = getattr(self, name)
            return tuple(value) if type(value) is list else value
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {attribute!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(f"_saved_{name}" for name in self.saved_names)]


def initialise(node: Node, edges: tuple[Edge, ...], outputs: tuple[Any, ...], inner: int = 2) -> None:
    """Fill the slots that every node has. `inner` as in `calling_place`, this function included."""
    node.edges = edges
    node.outputs = outputs
    node.sequence = next_sequence_number()
    node.code, node.instruction = calling_place(inner) or (None, 0)
    node._hooks = None
    node._metadata = None


class SameLeaf(Node):
    """Leads from a copy of a leaf, which a saved-tensor hook brought back, to the leaf itself."""

    __slots__ = ()

    def __init__(self, leaf: tensors.Tensor) -> None:
        initialise(self, ((leaf, 0),), ((tuple(leaf._array.shape), leaf._kind),))

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        return grads


class AccumulateGrad(Node):
    """The end of a path: adds the gradient to a leaf's `.grad`. Exists only while somebody holds it.

    Args:
        variable (Tensor): the leaf.

    Example:
        >>> weight = torch.ones(1, requires_grad=True)
        >>> (weight * 2).grad_fn.next_functions[0][0].variable is weight
        True
    """

    __slots__ = ("variable",)
    prefix = "torch::autograd::"

    def __init__(self, variable: tensors.Tensor) -> None:
        self.variable = variable
        self.edges = ()
        self.outputs = ((tuple(variable._array.shape), variable._kind),)
        self.sequence = 2**64 - 1  # as in PyTorch: before anything else that is ready
        self.code, self.instruction = None, 0
        self._hooks = None
        self._metadata = None

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        if grads[0] is not None:
            SLOTS.accumulate(self.variable, grads[0])
        return ()


from . import tensor as tensors  # noqa: E402  (for annotations: that module imports this one first)
