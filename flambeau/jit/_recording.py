"""Recording a run: the functions that Python calls on tensors, written down as text of TorchScript's language.

Public functions are seen first (`TorchFunctionMode`), and are written as PyTorch's operators where a rule of
`_emission.py` says how. What has no rule is written op by op, as an interpreter sees it. Sizes of tensors are numbers
that remember where they came from, so that a trace made with one batch size serves others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .._core.device import device, layout, memory_format
from .._core.dtype import dtype
from .._core.process.caller import warn_user
from .._core.size import Size
from .._core.subclasses import disabled_torch_function
from .._core.tensor import Tensor
from .._dispatch.op import Op
from ..compiler.capture.operators import as_operator
from ..compiler.capture.values import ValueRecorder
from ..compiler.program.items import Value
from ..overrides import TorchFunctionMode
from ._errors import TracerWarning
from ._language.numbers_of import number_of_dtype, number_of_layout, number_of_memory_format
from ._language.types import Type

_RENAMED = {"__add__": "add", "__sub__": "sub", "__mul__": "mul", "__floordiv__": "floordiv", "__mod__": "remainder"}


_UNSAID = ("requires_grad", "pin_memory", "generator")
"""Arguments that say nothing in a trace."""


class TracedInt(int):
    """A size of a tensor in a trace: a number, and the variable that holds it."""

    recording: Recording
    variable: str


def _arithmetic(name: str, reflected: bool) -> Callable[[TracedInt, Any], Any]:
    plain = getattr(int, name)

    def compute(self: TracedInt, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        pair = (other, self) if reflected else (self, other)
        value = plain(int(pair[0]), int(pair[1]))
        return self.recording.number(value, f"torch.{_RENAMED[name]}", pair)

    return compute


for _name in _RENAMED:
    setattr(TracedInt, _name, _arithmetic(_name, reflected=False))
    setattr(TracedInt, f"__r{_name[2:]}", _arithmetic(_name, reflected=True))


class TracedTensor(Tensor):
    """A tensor of a trace. It computes by the plain one inside of it; its sizes are known by name."""

    __torch_function__ = disabled_torch_function  # the recording wraps results, not the class
    plain: Tensor
    recording: Recording

    @property
    def shape(self) -> Any:
        """The sizes, each a `TracedInt`."""
        return tuple.__new__(Size, self.recording.sizes(self.plain))  # `Size` itself makes plain numbers of them

    def size(self, dim: int | None = None) -> Any:
        """The sizes, or one of them."""
        return self.shape if dim is None else self.shape[dim]

    def __len__(self) -> int:
        return int(self.plain.shape[0])


def plain_of(value: Any) -> Any:
    """A value with plain tensors and numbers in place of traced ones."""
    if isinstance(value, TracedTensor):
        return value.plain
    if isinstance(value, TracedInt):
        return int(value)
    if type(value) in (list, tuple):
        return type(value)([plain_of(each) for each in value])
    if type(value) is dict:
        return {key: plain_of(each) for key, each in value.items()}
    if type(value) is slice:
        return slice(plain_of(value.start), plain_of(value.stop), plain_of(value.step))
    return value


class Recording(TorchFunctionMode):
    """The lines of a trace, and which variable each tensor is in."""

    def __init__(self, attributes: dict[int, str]) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.constants: list[Tensor] = []
        self._variables: dict[Value, str] = {}
        self._attributes = attributes
        self._sizes: dict[tuple[str, int], TracedInt] = {}
        self.silent = 0
        self._ops = _Ops(self)

    def __enter__(self) -> Any:
        self._ops.__enter__()
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self._ops.__exit__(*exception)

    # ----- variables --------------------------------------------------------------------------------------------------

    def new_variable(self) -> str:
        """A name that no other value has."""
        return f"_{len(self._ops.tensors)}"

    def bind(self, tensor: Tensor, variable: str) -> None:
        """Say in which variable a tensor is; its last change of memory stays in that variable."""
        self._variables[self._ops.new_value(tensor)] = variable

    def traced(self, tensor: Tensor) -> TracedTensor:
        """The tensor as the traced Python sees it."""
        self.silent += 1
        try:
            made: TracedTensor = tensor.detach().as_subclass(TracedTensor)
        finally:
            self.silent -= 1
        made.plain, made.recording = tensor, self
        self.bind(made, self.variable_of(tensor))
        return made

    def variable_of(self, tensor: Tensor) -> str:
        """Where a tensor is: in a variable, in an attribute of the module, or among the constants."""
        tensor = plain_of(tensor)
        value = self._ops.value_of(tensor)
        if value is not None:
            return self._variables[value]
        path = self._attributes.get(id(tensor))
        if path is None:
            if tensor.requires_grad:
                raise RuntimeError(
                    "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or "
                    "input, or detaching the gradient"
                )
            self.constants.append(tensor.detach())
            path = f"CONSTANTS.c{len(self.constants) - 1}"
        variable = self.new_variable()
        self.lines.append(f"{variable} = {path}")
        self.bind(tensor, variable)
        return variable

    def sizes(self, tensor: Tensor) -> list[TracedInt]:
        """The sizes of a tensor; each is read where it is first used."""
        variable = self.variable_of(tensor)
        return [self._size(variable, place, extent) for place, extent in enumerate(tensor.shape)]

    def _size(self, variable: str, place: int, extent: int) -> TracedInt:
        return self.number(extent, "torch.size", (variable, place))

    def number(self, value: int, function: str, args: Sequence[Any]) -> TracedInt:
        """A number that the program works out."""
        made = TracedInt(value)
        texts = [each if type(each) is str else self.text(each) for each in args]
        made.recording, made.variable = self, f"{function}({', '.join(texts)})"
        return made

    # ----- text -------------------------------------------------------------------------------------------------------

    def text(self, value: Any) -> str:
        """A value as the language writes it."""
        if isinstance(value, Tensor):
            return self.variable_of(value)
        if isinstance(value, TracedInt):
            return value.variable
        if value is None or isinstance(value, (bool, int)):
            return str(value)
        if isinstance(value, float):
            return str(value) if math.isfinite(value) else str(float(value))
        if isinstance(value, str):
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        if isinstance(value, dtype):
            return str(number_of_dtype(value))
        if isinstance(value, memory_format):
            return str(number_of_memory_format(value))
        if isinstance(value, layout):
            return str(number_of_layout(value))
        if isinstance(value, device):
            return f'torch.device("{value}")'
        if isinstance(value, (list, tuple)):
            inner = ", ".join(map(self.text, value))
            return f"[{inner}]" if value else "annotate(List[int], [])"
        raise NotImplementedError(f"jit.trace cannot write down a value of type {type(value).__name__}")

    def emit(self, name: str, args: Sequence[Any], kwargs: dict[str, Any], results: Any) -> None:
        """Write a call of an operator, and note where its results are."""
        parts = [each.text if isinstance(each, Written) else self.text(each) for each in args]
        parts += [f"{key}={self.text(each)}" for key, each in kwargs.items() if each is not None and key not in _UNSAID]
        call = f"{name if name.startswith('ops.') else f'torch.{name}'}({', '.join(parts)})"
        several = isinstance(results, (tuple, list))
        tensors = [each for each in (results if several else [results]) if isinstance(each, Tensor)]
        if not tensors or (name.endswith("_") and not name.endswith("__")):  # `add_`, but not `__and__`
            self.lines.append(f"{self.new_variable()}x = {call}")
            return
        variables = []
        for each in tensors:
            variables.append(self.new_variable())
            self.bind(each, variables[-1])
        self.lines.append(f"{', '.join(variables)}{',' if several else ''} = {call}")

    # ----- what is seen -----------------------------------------------------------------------------------------------

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        from ._emission import rule_for

        given = dict(kwargs or {})
        if self.silent:  # inside of an operator of the user's own, which is written down as one call
            return func(*args, **given)
        name = getattr(func, "__name__", "")
        if name in ("item", "tolist", "numpy", "__bool__", "__int__", "__float__"):
            self._warn(name)
        rule = rule_for(func, args, given)
        if rule is None:
            return self.wrapped(func(*plain_of(args), **plain_of(given)))
        self.silent += 1
        try:
            result = func(*plain_of(args), **plain_of(given))
        finally:
            self.silent -= 1
        rule(self, args, given, result)
        return self.wrapped(result)

    def _warn(self, name: str) -> None:
        warn_user(
            f"Converting a tensor to a Python value by {name} might cause the trace to be incorrect: what Python does "
            "with it is not recorded, so that it is a constant in the trace, and may be wrong for other inputs.",
            TracerWarning,
        )

    def wrapped(self, result: Any) -> Any:
        """Results as the traced Python sees them."""
        if isinstance(result, Tensor):
            known = isinstance(result, TracedTensor) or self._ops.value_of(result) is None
            return result if known else self.traced(result)
        if isinstance(result, tuple):
            parts = [self.wrapped(each) for each in result]
            return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
        return [self.wrapped(each) for each in result] if isinstance(result, list) else result


class Written:
    """Text that stands in a call as it is."""

    def __init__(self, text: str) -> None:
        self.text = text


class _Ops(ValueRecorder):
    """Sees ops one by one, and writes those that no rule has written already."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self.recording = recording

    writes_operators_whole = True

    def run_operator(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: Callable[..., Any]) -> Any:
        recording = self.recording
        if recording.silent:
            return run(args, kwargs)
        recording.silent += 1
        try:
            results = run(plain_of(args), plain_of(kwargs))
        finally:
            recording.silent -= 1
        recording.emit(f"ops.{func.namespace}.{func._name}", args, kwargs, results)
        return recording.wrapped(results)

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        recording = self.recording
        if recording.silent:
            return op(*args)
        recording.silent += 1
        try:
            results = op(*plain_of(list(args)))
        finally:
            recording.silent -= 1
        if not op.reads and op.name != "constant":  # a constant is written where it is used
            func, given, by_name, only_first = as_operator(op, args)
            if func.namespace != "aten":
                raise NotImplementedError(
                    f"jit.trace cannot write down {op.name}: PyTorch has no operator for it. Use the public function "
                    "of torch or torch.nn.functional directly, or save a state dict."
                )
            recording.emit(func._name, given, by_name, results[0] if only_first else results)
        return results


def type_of_example(value: Any) -> Type:
    """The type of an input or output of a trace."""
    if isinstance(value, Tensor):
        return Type("Tensor")
    if isinstance(value, tuple) and value:
        return Type("Tuple", tuple(map(type_of_example, value)))
    if isinstance(value, list) and value:
        return Type("List", (type_of_example(value[0]),))
    if isinstance(value, dict) and value:
        key, inner = next(iter(value.items()))
        if isinstance(key, str):
            return Type("Dict", (Type("str"), type_of_example(inner)))
    raise RuntimeError(
        f"Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions, not "
        f"{type(value).__name__}"
    )
