"""`summary(model, input)`: what a model is made of, as a table of layers, shapes, parameters and memory."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from .. import nn
from .._core.dtype import dtype as DType
from .._core.dtype import get_default_dtype
from .._core.tensor import Tensor
from .._ops.create.constants import ones, zeros
from ..autograd.grad_mode import no_grad
from ..nn.parameter import is_lazy
from ..random import fork_rng
from ._mult_adds import mult_adds

_NOTHING = "--"


@dataclass
class Row:
    """One module of the table. What of it was counted in a row above is not counted again."""

    name: str
    type_name: str
    depth: int
    output_shape: Any = None
    """The shape of what the module returned first, in a list of such for several; None if it was not called."""
    params: int = 0
    trainable_params: int = 0
    is_shared: bool = False
    """Whether it has parameters, all of which were counted above."""
    mult_adds: int = 0
    is_container: bool = False
    """Whether rows for its members follow: its own row then counts only what is its own."""

    def cells(self) -> tuple[str, str, str, str]:
        """The row as text; parameters that are all frozen are in parentheses."""
        label = f"{self.name} ({self.type_name})" if self.name else self.type_name
        count = f"{self.params:,}"
        if self.is_shared:
            count = "(shared)"
        elif self.params and not self.trainable_params:
            count = f"({count})"
        elif not self.params:
            count = _NOTHING
        shape = _NOTHING if self.output_shape is None else ", ".join(_shapes(self.output_shape)) or _NOTHING
        return "  " * self.depth + label, shape, count, f"{self.mult_adds:,}" if self.mult_adds else _NOTHING


@dataclass
class Summary:
    """The table of a model and its totals; `str()` shows it."""

    rows: list[Row] = field(default_factory=list)
    total_params: int = 0
    trainable_params: int = 0
    mult_adds: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    """Memory of what all layers returned: what a forward pass for training keeps, about."""
    param_bytes: int = 0
    """Memory of parameters and buffers."""

    @property
    def frozen_params(self) -> int:
        """The elements of parameters that need no gradient."""
        return self.total_params - self.trainable_params

    @property
    def total_bytes(self) -> int:
        """An estimate of the memory of a training step, gradients of parameters and optimizer not included."""
        return self.input_bytes + 2 * self.output_bytes + self.param_bytes

    def __str__(self) -> str:
        table = [("Layer (type)", "Output shape", "Param #", "Mult-adds"), *(row.cells() for row in self.rows)]
        widths = [max(len(cells[column]) for cells in table) for column in range(4)]
        lines = [
            f"{name:<{widths[0]}}  {shape:<{widths[1]}}  {count:>{widths[2]}}  {work:>{widths[3]}}"
            for name, shape, count, work in table
        ]
        rule, thin = "=" * len(lines[0]), "-" * len(lines[0])
        totals = [
            f"Total params: {self.total_params:,}",
            f"Trainable params: {self.trainable_params:,}",
            f"Frozen params: {self.frozen_params:,}",
            f"Total mult-adds: {self.mult_adds:,}",
        ]
        memory = [
            f"{what} (MB): {count / 1e6:.2f}"
            for what, count in (
                ("Input size", self.input_bytes),
                ("Forward/backward pass size", 2 * self.output_bytes),
                ("Params size", self.param_bytes),
                ("Estimated total size", self.total_bytes),
            )
        ]
        return "\n".join([rule, lines[0], rule, *lines[1:], rule, *totals, thin, *memory, rule])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What notebooks show: the same table, and the totals below."""
        head = ("Layer (type)", "Output shape", "Param #", "Mult-adds")
        lines = [_html_row("th", head), *[_html_row("td", row.cells()) for row in self.rows]]
        totals = (
            f"{self.total_params:,} parameters, {self.trainable_params:,} of them trained · {self.mult_adds:,} "
            "mult-adds · "
            f"about {self.total_bytes / 1e6:.3g} MB for a training step"
        )
        return f"<table>{''.join(lines)}</table><small>{totals}</small>"


def _html_row(tag: str, cells: Sequence[str]) -> str:
    """A row of the table; the first two columns are texts, the others numbers."""
    styles = ("text-align:left;white-space:pre", "text-align:left", "text-align:right", "text-align:right")
    return "".join(
        [
            "<tr>",
            *[f'<{tag} style="{style}">{escape(cell)}</{tag}>' for style, cell in zip(styles, cells, strict=True)],
            "</tr>",
        ]
    )


@dataclass
class _Calls:
    """What was seen of a module while the model ran."""

    shape: Any = None
    mult_adds: int = 0
    new_bytes: int = 0


def summary(
    model: nn.Module,
    input: Any = None,
    *,
    input_size: Any = None,
    dtype: DType | Sequence[DType] | None = None,
    depth: int | None = None,
    **kwargs: Any,
) -> Summary:
    """The layers of a model with output shapes, parameters, multiply-adds and memory.

    `input` is what the model is called with: a tensor, a tuple or list of arguments, or a dict of keyword arguments;
    `kwargs` are passed on too. Or `input_size` is the shape of a made-up tensor, batch included, or a list of shapes,
    and `dtype` its type. With neither, nothing runs, and no shapes are known. `depth` bounds the levels shown.

    The model runs once, in evaluation mode and without gradients, on the device where it is (the meta device will do).
    It is left as it was: modes, buffers and the random generator included.

    >>> table = flambeau.summary(flambeau.nn.Linear(4, 2), input_size=(8, 4))
    >>> table.total_params, table.mult_adds
    (10, 64)

    Args:
        model (nn.Module): the module.
        input: an example input, or a tuple of them.
        input_size: the shape of an input in place of one, or several.
        dtype (DType or sequence of DTypes, optional): the dtype of inputs made from `input_size`.
        depth (int, optional): how many levels of modules to show; None means all.
        **kwargs: keyword arguments of the model.

    Returns:
        a table, which prints itself.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"summary(): argument 'model' must be a Module, not {type(model).__name__}")
    if _is_size(input) and input_size is None:
        input, input_size = None, input
    if input is not None and input_size is not None:
        raise ValueError("summary(): give 'input' or 'input_size', not both")
    if input_size is not None:
        input = _made_up(model, input_size, dtype)
    if input is None and not kwargs:
        return _tabulated(model, {}, depth, Summary())
    if any(is_lazy(each) for each in (*model.parameters(), *model.buffers())):
        model = copy.deepcopy(model)  # running it gives its parameters their shapes
    args: tuple[Any, ...] = ()
    if isinstance(input, Mapping):
        kwargs = {**input, **kwargs}
    elif isinstance(input, (tuple, list)) and not hasattr(input, "_fields"):  # a packed sequence is one argument
        args = tuple(input)
    elif input is not None:
        args = (input,)
    calls = _observed(model, args, kwargs)
    return _tabulated(model, calls, depth, Summary(input_bytes=sum(map(_bytes, _tensors((args, kwargs))))))


def _is_size(value: Any) -> bool:
    """Whether `value` is a shape, or a list of shapes."""
    if not isinstance(value, (tuple, list)) or not len(value):
        return False
    return all(isinstance(each, int) for each in value) or all(_is_size(each) for each in value)


def _made_up(model: nn.Module, sizes: Any, dtype: DType | Sequence[DType] | None) -> tuple[Tensor, ...]:
    if not _is_size(sizes):
        raise TypeError(f"summary(): 'input_size' must be a shape or a list of shapes, not {sizes!r}")
    if isinstance(sizes[0], int):
        sizes = [sizes]
    members = [each for each in (*model.parameters(), *model.buffers()) if not is_lazy(each)]
    place = members[0].device if members else None
    if dtype is None:
        dtype = next((each.dtype for each in members if each.is_floating_point()), get_default_dtype())
    kinds = [dtype] * len(sizes) if isinstance(dtype, DType) else list(dtype)
    if len(kinds) != len(sizes):
        raise ValueError(f"summary(): {len(sizes)} shapes in 'input_size', but {len(kinds)} dtypes")
    return tuple(
        (ones if kind.is_floating_point else zeros)(tuple(size), dtype=kind, device=place)
        for size, kind in zip(sizes, kinds, strict=True)
    )


# ----- the run ------------------------------------------------------------------------------------------------------


def _observed(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[nn.Module, _Calls]:
    """Run the model and note what every module returned."""
    calls: dict[nn.Module, _Calls] = {}

    def note(module: nn.Module, inputs: Any, named: Any, output: Any) -> None:
        call = calls.setdefault(module, _Calls())
        if call.shape is None:
            call.shape = _shape(output)
        call.mult_adds += mult_adds(module, (*inputs, *named.values()), output)
        if not any(child in calls for child in module.children()):
            known = {_memory(each) for each in _tensors((inputs, named))}
            call.new_bytes += sum(_bytes(each) for each in _tensors(output) if _memory(each) not in known)

    handles = [module.register_forward_hook(note, with_kwargs=True) for module in model.modules()]
    try:
        with _left_as_it_was(model), fork_rng(), no_grad():
            model(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    return calls


@contextlib.contextmanager
def _left_as_it_was(model: nn.Module) -> Iterator[None]:
    """Evaluation mode; afterwards the modes and buffers from before."""
    modules = list(model.modules())
    modes = [module.training for module in modules]
    buffers = [(module, name, each) for module in modules for name, each in module._buffers.items()]
    content = [None if each is None else each.detach().clone() for _, _, each in buffers]
    model.eval()
    try:
        yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode
        with no_grad():
            for (module, name, buffer), before in zip(buffers, content, strict=True):
                module._buffers[name] = buffer
                if buffer is not None and before is not None and not buffer.is_meta and not buffer.equal(before):
                    buffer.copy_(before)


def _tensors(value: Any) -> Iterator[Tensor]:
    """All tensors in a nest of containers."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list, Mapping)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(each)


def _memory(tensor: Tensor) -> int:
    """A number that a tensor and its views have in common."""
    return id(tensor if tensor._base is None else tensor._base)


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _shape(value: Any) -> Any:
    """The shape of a tensor, or a list of the shapes in a container."""
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return [_shape(each) for each in value] if isinstance(value, (tuple, list)) else []


def _shapes(shape: Any) -> list[str]:
    if isinstance(shape, tuple):
        return [str(list(shape))]
    return [text for each in shape for text in _shapes(each)]


# ----- the table ----------------------------------------------------------------------------------------------------


def _tabulated(model: nn.Module, calls: dict[nn.Module, _Calls], depth: int | None, result: Summary) -> Summary:
    tensors = {each for each in (*model.parameters(), *model.buffers()) if not is_lazy(each)}
    result.param_bytes = sum(map(_bytes, tensors))
    result.output_bytes = sum(call.new_bytes for call in calls.values())
    result.mult_adds = sum(call.mult_adds for call in calls.values())
    _add_rows(result, "", model, 0, depth, calls, set(), set())
    result.total_params = sum(row.params for row in result.rows)
    result.trainable_params = sum(row.trainable_params for row in result.rows)
    return result


def _add_rows(
    result: Summary,
    name: str,
    module: nn.Module,
    level: int,
    depth: int | None,
    calls: dict[nn.Module, _Calls],
    counted: set[Tensor],
    seen: set[nn.Module],
) -> None:
    """Add the row of a module and those of its members."""
    is_known = module in seen
    members = [] if is_known else [(key, child) for key, child in module._modules.items() if child is not None]
    is_cut = bool(members) and depth is not None and level >= depth
    parameters = set(module.parameters(recurse=is_cut or is_known))
    own = [each for each in parameters - counted if not is_lazy(each)]
    covered = [each for each in module.modules() if each not in seen] if is_cut else [] if is_known else [module]
    seen.update(covered)
    counted.update(parameters)
    result.rows.append(
        Row(
            name,
            type(module).__name__,
            level,
            output_shape=calls[module].shape if module in calls else None,
            params=sum(each.numel() for each in own),
            trainable_params=sum(each.numel() for each in own if each.requires_grad),
            is_shared=bool(parameters) and not own and not any(map(is_lazy, parameters)),
            mult_adds=sum(calls[each].mult_adds for each in covered if each in calls),
            is_container=bool(members) and not is_cut,
        )
    )
    if not is_cut:
        for key, child in members:
            _add_rows(result, key, child, level + 1, depth, calls, counted, seen)
