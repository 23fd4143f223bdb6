"""What a class of nodes does in a backward pass: its formulas with what they take, written as source.

`OpNode` says the same as loops over the names of what was saved. Written out for one class it is a third of that, and
most of the time of a backward pass over small tensors. It is written when a class first runs backward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core.backend import LARGE
from ..._core.modes import THREAD
from ..._core.node import FREED_NUMBER, OpNode, SavedTensor
from ..._core.process.debugger import is_debugged
from ..._core.slots import SLOTS
from ..._core.tensor import PLAIN_TYPES, Tensor, new
from ..call.results import fresh, leaf
from ..call.text import new_tensor
from .array_derivatives import TAKEN
from .recorder import written

_NAMES = {
    "LARGE": LARGE, "PLAIN_TYPES": PLAIN_TYPES, "SavedTensor": SavedTensor, "TAKEN": TAKEN, "THREAD": THREAD,
    "Tensor": Tensor, "SLOTS": SLOTS, "fresh": fresh, "generic": OpNode.apply, "leaf": leaf,
    "new": new,
}  # fmt: skip


def first_apply(self: OpNode, grads: list[Any], edges: Sequence[Any] | None = None) -> Sequence[Any]:
    """`apply` of a class of nodes that has not run yet. In a debugger it stays so: one steps through the loops."""
    if is_debugged():
        return OpNode.apply(self, grads, edges)
    node_type: Any = type(self)
    if node_type.op.list_position is None:
        node_type.apply = _apply_of(node_type)
    elif len(node_type.formulas) > 1 or node_type.list_input is None:
        node_type.apply = OpNode.apply
    else:  # it has as many edges as the list has tensors
        node_type.apply = _apply_to_list_of(node_type)
    node_type.release = _release_of(node_type)
    node_type.holds = bool(_holding(node_type))
    return self.apply(grads, edges)


def _apply_of(node_type: type[OpNode]) -> Callable[..., Any]:
    names: dict[str, Any] = dict(_NAMES)
    edges = [f"e{number}" for number in range(len(node_type.formulas))]
    lines = [f"{''.join(f'{each}, ' for each in edges) or '_'} = self.edges if edges is None else edges"]
    if node_type.joint is not None:
        names["formula"], taken = node_type.joint
        lines.append(f"needed = ({''.join(f'{each} is not None, ' for each in edges)})")
        if hasattr(names["formula"], "as_one"):
            lines += _by_kernel(node_type, taken)
        lines += [line for name in taken for line in _value(node_type, name)]
        lines.append(f"return formula(grads, needed, {', '.join(map(_local, taken))})")
    else:
        lines += ["grad = grads[0]", "if grad is None:", "    return generic(self, grads, edges)"]
        if edges and _holding(node_type):
            lines += [f"if {' is '.join(edges)} is None:", "    return self.without_edges()"]
        given = [entry[0] for entry in node_type.formulas if entry is not None]
        if node_type.op.fuses and not node_type.op.is_view and not all(map(_hands_on, given)):
            names["plans"] = {}
            lines += _in_one_pass(node_type, edges)  # what moves no element has nothing to compute
        users = _users(node_type)
        if any(hasattr(formula, "on_arrays") for formula in given):
            lines += _array_of_gradient(node_type.op.gradient_in_rows)
        if (at_once := node_type.op.gradients_by_plan) is not None:
            names["at_once"] = at_once
            lines += _at_once(edges)
        for name, positions in users.items():
            if len(positions) > 1:  # unpacked once, as hooks expect
                lines.append(f"if {' or '.join(f'e{number} is not None' for number in positions)}:")
                lines += [f"    {line}" for line in _value(node_type, name)]
        for number, entry in enumerate(node_type.formulas):
            lines.append(f"r{number} = None")
            if entry is None:
                continue
            names[f"formula{number}"], taken = entry
            lines.append(f"if e{number} is not None:")
            if _hands_on(entry[0]):
                lines.append(f"    r{number} = grad")
                continue
            alone = [name for name in taken if len(users[name]) == 1]
            before = "    "
            shared = [name for name in _holding(node_type) if name in taken and name not in alone]
            if (shorter := getattr(entry[0], "on_arrays", None)) is not None and not shared:
                names[f"shorter{number}"] = shorter
                lines += [f"    {line}" for line in _on_arrays(node_type, number, taken)]
                lines.append(f"    if r{number} is None:")
                before = "        "
            lines += [f"{before}{line}" for name in alone for line in _value(node_type, name)]
            lines.append(f"{before}r{number} = formula{number}({', '.join(['grad', *map(_local, taken)])})")
        lines.append(f"return ({''.join(f'r{number}, ' for number in range(len(edges)))})")
    return written("apply", "self, grads, edges=None", lines, f"apply of {node_type.__name__}", names)


def _array_of_gradient(in_rows: bool) -> list[str]:
    """Takes the gradient's array, where the formulas may run on arrays: see `array_derivatives.unrecorded`."""
    lines = [
        "modes, kind, array = THREAD.modes, grad._kind, None",
        "if not modes.grad and modes.plain and not modes.autocast.elementwise and type(grad) in PLAIN_TYPES:",
        "    if TAKEN[kind]:",
        "        array = grad._array",
    ]
    if in_rows:
        lines += [
            "        if array.ndim != 2 and not array.flags.c_contiguous:",
            "            array = array.reshape(-1, array.shape[-1])",
        ]
    return lines


def _at_once(edges: list[str]) -> list[str]:
    """Computes all gradients by one plan, on devices where such plans are found by the layouts of arrays."""
    return [
        "if array is not None and kind.backend.plans_derivatives:",
        f"    done = at_once(self, array, kind, ({''.join(f'{each} is not None, ' for each in edges)}))",
        "    if done is not None:",
        "        return [None if each is None else leaf(each, kind) for each in done]",
    ]


def _on_arrays(node_type: type[OpNode], number: int, taken: tuple[str, ...]) -> list[str]:
    """Runs the form of a formula on arrays, if all that was saved for it is there as such."""
    lines, held = ["fits = array is not None"], _holding(node_type)
    for name in taken:
        local = _local(name)
        lines.append(f"{local} = self.{name}")
        if name in held:
            lines += [
                f"if fits and type({local}) is SavedTensor:",
                f"    {local} = {local}.array_of(kind)",
                f"    fits = {local} is not None",
            ]
    arguments = ", ".join(["array", *map(_local, taken)])
    return [
        *lines,
        "if fits:",
        f"    made = shorter{number}({arguments})",
        "    if made is not None:",
        # What `fresh` does, in place where nothing about the gradient's kind is special.
        "        if type(made) is kind.backend.array_class and made.dtype is kind.dtype.numpy:",
        *[f"            {line}" for line in new_tensor("made")],
        f"            r{number} = output",
        "        else:",
        f"            r{number} = fresh(made, grad)",
    ]


def _by_kernel(node_type: type[OpNode], taken: tuple[str, ...]) -> list[str]:
    """Runs the kernel of a joint formula on arrays, as a composite's call does, if all that it needs is there."""
    lines, held = [], _holding(node_type)
    for name in taken:
        local = _local(name)
        lines.append(f"{local} = self.{name}")
        if name in held:
            lines += [
                f"if type({local}) is SavedTensor:",
                f"    {local} = {local}.array_on(place)",
                f"    fits = fits and {local} is not None",
                f"elif type({local}) is list:",
                "    fits = False",
            ]
    return [
        "modes, first = THREAD.modes, grads[0]",
        "if not modes.grad and modes.plain and type(first) in PLAIN_TYPES and not first._kind.indirect:",
        "    kind = first._kind",
        "    place, given, fits = kind.device, [], True",
        "    for each in grads:",
        "        if each is None:",
        "            given.append(None)",
        "        elif type(each) in PLAIN_TYPES and each._kind.device is place and not each._kind.indirect:",
        "            given.append(each._array)",
        "        else:",
        "            fits = False",
        *[f"    {line}" for line in lines],
        "    if fits:",
        "        run = kind.runs.get(formula) or kind.backend.prepare(formula)",
        f"        done = run(given, needed, {', '.join(map(_local, taken))})",
        "        if done is not None:",
        "            return [None if each is None else fresh(each, first) for each in done]",
    ]


_HANDED_ON = (lambda grad: grad).__code__


def _hands_on(formula: Any) -> bool:
    """Whether a formula is `lambda grad: grad`, which need not be called."""
    code = getattr(formula, "__code__", None)
    return code is not None and code.co_code == _HANDED_ON.co_code and code.co_argcount == 1


def _users(node_type: type[OpNode]) -> dict[str, list[int]]:
    """For each name of what was saved, the numbers of the formulas that take it."""
    users: dict[str, list[int]] = {}
    for number, entry in enumerate(node_type.formulas):
        for name in () if entry is None else entry[1]:
            users.setdefault(name, []).append(number)
    return users


def _apply_to_list_of(node_type: type[OpNode]) -> Callable[..., Any]:
    """The `apply` of a node whose one differentiable input is a list of tensors."""
    entry = node_type.formulas[0] if node_type.joint is None and node_type.formulas else None
    if entry is None:
        return OpNode.apply
    formula, taken = entry
    lines = ["if edges is not None or grads[0] is None:", "    return generic(self, grads, edges)"]
    lines += [line for name in taken for line in _value(node_type, name)]
    lines.append(f"return formula({', '.join(['grads[0]', *map(_local, taken)])})")
    names: dict[str, Any] = {"SavedTensor": SavedTensor, "formula": formula, "generic": OpNode.apply}
    return written("apply", "self, grads, edges=None", lines, f"apply of {node_type.__name__}", names)


def _in_one_pass(node_type: type[OpNode], edges: list[str]) -> list[str]:
    """All gradients at once, where there is much to read or a call costs more than what it computes."""
    values = ", ".join(f"{name!r}: {_local(name)}" for name in node_type.saved_names)
    saved = "".join(f"self.{name}, " for name in node_type.saved_names)
    wanted = "".join(f"{each}, " for each in edges)
    return [
        "backend = grad._kind.backend",
        "if (grad._array.size >= LARGE or backend.costs_per_call) and backend.in_one_pass is not None:",
        "    done = None",
        "    if backend.plans_derivatives:",
        f"        done = SLOTS.derivatives_by_plan(self, grad, plans, ({saved}), ({wanted}))",
        "        if done:",
        "            return done",
        "    if done is None:",
        *(f"        {line}" for name in node_type.saved_names for line in _value(node_type, name)),
        f"        values = {{{values}}}",
        f"        done = backend.in_one_pass(self, grad, values, ({wanted}))",
        "        if done is not None:",
        "            return done",
        *[f"        r{number} = {_result(number, entry)}" for number, entry in enumerate(node_type.formulas)],
        f"        return ({''.join(f'r{number}, ' for number in range(len(edges)))})",
    ]


def _result(number: int, entry: Any) -> str:
    """What a formula gives, whose values are there already."""
    if entry is None:
        return "None"
    arguments = ", ".join(["grad", *map(_local, entry[1])])
    return f"formula{number}({arguments}) if e{number} is not None else None"


def _local(name: str) -> str:
    return f"v_{name}"


def _holding(node_type: type[OpNode]) -> list[str]:
    """The names under which tensors may be kept: not those of arguments that are annotated as something else."""
    annotations = getattr(node_type.op.kernel, "__annotations__", {})
    return [name for name in node_type.held_names if not str(annotations.get(name, "")).startswith(_NO_TENSORS)]


_NO_TENSORS = ("int", "float", "bool", "str", "Shape", "Sizes", "tuple[int")


def _value(node_type: type[OpNode], name: str) -> list[str]:
    """Takes what was saved as `name`, tensors unpacked and checked, into a local name."""
    local = _local(name)
    lines = [f"{local} = self.{name}"]
    if name in _holding(node_type):
        lines += [
            f"if type({local}) is SavedTensor:",
            f"    {local} = {local}.for_formula(self)",
            f"elif type({local}) is list:",
            f"    {local} = self._value({name!r})",
        ]
    return lines


def _release_of(node_type: type[OpNode]) -> Callable[..., Any]:
    op = node_type.op
    lines = ["pass"]
    for name in _holding(node_type):
        lines += [
            f"saved = self.{name}",
            "if type(saved) is SavedTensor:",
            "    saved.tensor = saved.special = None",
            "elif type(saved) is list:",
            "    for each in saved:",
            "        if type(each) is SavedTensor:",
            "            each.release()",
        ]
        if name in op.tensor_names:
            lines += [
                "elif type(saved) is float or type(saved) is int:",
                f"    self.{name} = FREED_NUMBER",  # the number in x * 2 counts as a saved tensor
            ]
    names = {"SavedTensor": SavedTensor, "FREED_NUMBER": FREED_NUMBER}
    return written("release", "self", lines, f"release of {node_type.__name__}", names)
