"""Finds a call for every schema that PyTorch's CPU build takes one for, and writes them down.

Calls come from the samples of PyTorch's operator database, watched by a dispatch mode, forward and backward; from the
same samples given to all overloads of an operator, in place and with `out=` too; and for the rest from arguments that
are drawn by their types. A process of its own makes each drawn call: some operators end it.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import signal
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import torch as pytorch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from .calls import FILE, Call, as_text, from_text, name_in, overload, recorded
from .excluded import SPACES, excluded
from .gaps import listed
from .written import written

LARGEST = 3000
"""Calls with more elements than this are not written down."""
KEPT = 4
"""So many candidates are kept for an operator; the smallest of those that give something finite is written down."""


def schemas() -> dict[str, Any]:
    """All schemas of the namespaces that count, by their names."""
    import torch.ao.quantization.fx._decomposed  # noqa: F401  (registers its operators)

    found = {}
    for schema in pytorch._C._jit_get_all_schemas():
        if schema.name.partition("::")[0] in SPACES:
            found[schema.name + (f".{schema.overload_name}" if schema.overload_name else "")] = schema
    return dict(sorted(found.items()))


def _size(value: Any) -> int:
    return sum(each.numel() + 1 for each in tree_leaves(value) if isinstance(each, pytorch.Tensor))


def _copied(value: Any) -> Any:
    return tree_map(lambda each: each.detach().clone() if isinstance(each, pytorch.Tensor) else each, value)


class _Calls:
    """Candidates by the names of operators, the smallest first."""

    def __init__(self) -> None:
        self.found: dict[str, list[tuple[int, Call]]] = defaultdict(list)

    def add(self, call: Call) -> None:
        size = _size((call.args, call.kwargs))
        held = self.found[call.operator]
        empty = any(isinstance(each, pytorch.Tensor) and each.numel() == 0 for each in tree_leaves(call.args))
        rank = size + 10_000 * empty
        if size > LARGEST:
            return
        if len(held) < KEPT or rank < held[-1][0]:
            held.append((rank, Call(call.operator, _copied(call.args), _copied(call.kwargs))))
            held.sort(key=lambda each: each[0])
            del held[KEPT:]


class _Watch(TorchDispatchMode):
    def __init__(self, calls: _Calls) -> None:
        super().__init__()
        self.calls = calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.add(Call(func.name(), args, kwargs or {}))
        return func(*args, **(kwargs or {}))


def _samples(info: Any) -> Iterator[Any]:
    for dtype in (pytorch.float32, pytorch.int64, pytorch.complex64):
        if dtype in info.supported_dtypes("cpu"):
            gradients = dtype is not pytorch.int64 and info.supports_autograd
            limit = 12 if dtype is pytorch.float32 else 2
            yield from itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=gradients), limit)


def _watched(calls: _Calls) -> None:
    """What the samples of the database run, forward and backward."""
    for info in op_db:
        try:
            samples = list(_samples(info))
        except Exception:
            continue
        for sample in samples:
            try:
                with _Watch(calls):
                    result = info.op(sample.input, *sample.args, **sample.kwargs)
                    for each in tree_leaves(result):
                        if isinstance(each, pytorch.Tensor) and each.requires_grad:
                            each.backward(pytorch.ones_like(each), retain_graph=True)
            except Exception:
                pass
            args, kwargs = (sample.input, *sample.args), sample.kwargs
            for name in {info.aten_name, info.name.replace(".", "_"), info.name.rpartition(".")[2]}:
                _tried_directly(calls, name, args, kwargs)


def _tried_directly(calls: _Calls, name: str, args: Any, kwargs: Any) -> None:
    for form in (name, f"{name}_"):
        packet = getattr(pytorch.ops.aten, form, None)
        if packet is None:
            continue
        for each in packet.overloads():
            func = getattr(packet, each)
            if len(calls.found[func.name()]) >= KEPT:
                continue
            given, named = _copied(args), _copied(kwargs)
            try:
                with pytorch.no_grad():
                    func(*given, **named)
            except Exception:
                continue
            calls.add(Call(func.name(), args, kwargs))


def _relatives(calls: _Calls, known: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The arguments of all candidates by name, for each family of operators that differ in what they write to."""
    pool: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name, held in calls.found.items():
        if name in known:
            names = [each.name for each in known[name].arguments]
            pool[_family(name)] += [dict(zip(names, call.args, strict=False)) | call.kwargs for _, call in held]
    return pool


def _family(name: str) -> str:
    base = name.partition("::")[2].partition(".")[0]
    return base.removesuffix("_functional").removesuffix("_copy").strip("_").removesuffix("_impl")


def _refitted(name: str, schema: Any, values: dict[str, Any]) -> Call | None:
    args, kwargs = [], {}
    for argument in schema.arguments:
        if argument.is_out:
            many = "[]" in str(argument.type)
            value: Any = [pytorch.empty(0), pytorch.empty(0)] if many else pytorch.empty(0)
            kwargs[argument.name] = value
            continue
        if argument.name in values:
            value = values[argument.name]
        elif argument.has_default_value():
            value = argument.default_value
        else:
            return None
        if argument.kwarg_only:
            kwargs[argument.name] = value
        else:
            args.append(value)
    call = Call(name, tuple(args), kwargs)
    outs = [each.name for each in schema.arguments if each.is_out]
    if outs:
        return _with_outs(call, outs)
    return call


def _with_outs(call: Call, outs: list[str]) -> Call:
    """The call with places for its results that have the dtypes of the results."""
    for dtype in (pytorch.float32, pytorch.int64, pytorch.bool, pytorch.complex64):
        kwargs = {k: v for k, v in call.kwargs.items() if k not in outs}
        count = len(call.args[0]) if call.args and isinstance(call.args[0], list) else 2
        for name in outs:
            many = isinstance(call.kwargs[name], list)
            kwargs[name] = (
                [pytorch.empty(0, dtype=dtype) for _ in range(count)] if many else pytorch.empty(0, dtype=dtype)
            )
            if name in ("indices", "indices_out", "max_indices") and dtype is pytorch.float32:
                kwargs[name] = pytorch.empty(0, dtype=pytorch.int64)
        tried = Call(call.operator, call.args, kwargs)
        if _runs(tried):
            return tried
    return call


def _runs(call: Call) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            overload(call.operator)(*_copied(call.args), **_copied(call.kwargs))
    except Exception:
        return False
    return True


# Arguments by their types ---------------------------------------------------------------------------------------------

_SHAPES = ((3, 3), (3,), (), (2, 3, 4), (2, 3, 4, 4), (2, 2, 3, 3, 3), (4,), (2, 3), (1,))
_DTYPES = (pytorch.float32, pytorch.float32, pytorch.float32, pytorch.int64, pytorch.bool, pytorch.complex64)


def _drawn(kind: str, name: str, source: random.Random, shape: Any, dtype: Any) -> Any:
    if kind.startswith("Optional["):
        return None if source.random() < 0.6 else _drawn(kind[9:-1], name, source, shape, dtype)
    if kind.startswith("List["):
        inner = kind[5:-1]
        length = source.choice((1, 2, 2, 3, len(shape)))
        return [_drawn(inner, name, source, shape, dtype) for _ in range(length)]
    if kind.startswith("Dict("):
        key, value = kind[5:-1].split(", ", 1)
        return {_drawn(key, name, source, shape, dtype): _drawn(value, name, source, shape, dtype)}
    if kind == "Tensor":
        if source.random() < 0.3:
            shape, dtype = source.choice(_SHAPES), source.choice(_DTYPES)
        return (pytorch.rand(shape) * 4).to(dtype)
    if kind in ("int", "SymInt"):
        if "dtype" in name:
            return 6
        return source.choice((0, 1, 1, 2, 3, -1))
    if kind in ("number", "Scalar"):
        return source.choice((1, 2, 0.5))
    if kind == "str":
        return source.choice(("ab", "mean", "sum", "none"))
    simple: dict[str, Any] = {
        "float": source.choice((0.5, 1.0, 2.0)), "bool": source.random() < 0.5, "Device": pytorch.device("cpu"),
        "complex": 1 + 2j, "t": 2, "tVal": 2, "AnyListType": [1, 2], "Any": 2, "Layout": pytorch.strided,
        "ScalarType": pytorch.float32, "MemoryFormat": pytorch.contiguous_format,
    }  # fmt: skip
    if kind in simple:
        return simple[kind]
    raise TypeError(kind)


def _drawn_calls(name: str, schema: Any, attempts: int = 60) -> Iterator[Call]:
    source = random.Random(name)
    for _ in range(attempts):
        shape, dtype = source.choice(_SHAPES), source.choice(_DTYPES)
        args, kwargs = [], {}
        for each in schema.arguments:
            if each.has_default_value() and source.random() < 0.7:
                if not each.kwarg_only:
                    args.append(each.default_value)
                continue
            value = _drawn(str(each.type), each.name, source, shape, dtype)
            if each.kwarg_only:
                kwargs[each.name] = value
            else:
                args.append(value)
        yield Call(name, tuple(args), kwargs)


def _is_typed(call: Call, schema: Any) -> bool:
    """Whether tensors are given for tensors alone, and not for the numbers and lists that some schemas take."""
    values = [*zip(schema.arguments, call.args, strict=False)]
    values += [(each, call.kwargs[each.name]) for each in schema.arguments if each.name in call.kwargs]
    return all("Tensor" in str(each.type) for each, value in values if isinstance(value, pytorch.Tensor))


def _texts(held: list[tuple[int, Call]]) -> Iterator[str]:
    for literal in (False, True):
        for _, call in held:
            yield as_text(call, literal)


def _candidates(name: str, schema: Any, held: list[tuple[int, Call]], relatives: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of calls that PyTorch takes, the best first."""
    yield from _texts(held)
    for values in relatives:
        refitted = _refitted(name, schema, values)
        if refitted is not None and _runs(refitted):
            yield as_text(refitted)
            yield as_text(refitted, literal=True)
    for call in _drawn_calls(name, schema):
        if _runs(call):
            yield as_text(call)


def _in_a_child(name: str, schema: Any, held: list[tuple[int, Call]], relatives: list[dict[str, Any]]) -> str | None:
    """The line of the first good call that PyTorch takes, or of one that it takes; None if there is none."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        fallbacks = []
        try:
            for line in _candidates(name, schema, held, relatives):
                if _is_good(line):
                    os.write(writing, line.encode())
                    os._exit(0)
                if len(fallbacks) < 8 and _runs(from_text(line)):
                    fallbacks.append(line)
        except Exception:
            pass
        if fallbacks:
            os.write(writing, fallbacks[0].encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text or None


def _is_good(line: str) -> bool:
    """Whether a call that was written down and read again gives something, without infinities."""
    call = from_text(line)
    pytorch.manual_seed(0)
    try:
        result = overload(call.operator)(*call.args, **call.kwargs)
    except Exception:
        return False
    tensors = [
        each for each in tree_leaves(result) if isinstance(each, pytorch.Tensor) and each.layout is pytorch.strided
    ]
    return all(each.numel() > 0 and bool(each.isfinite().all()) for each in tensors if not each.is_quantized)


def watched() -> _Calls:
    """The candidates that the samples of the operator database give."""
    warnings.simplefilter("ignore")
    pytorch.set_num_threads(1)
    pytorch.manual_seed(0)
    calls = _Calls()
    _watched(calls)
    return calls


def extended() -> tuple[_Calls, dict[str, str]]:
    """The recorded calls as candidates, and those of them that stay: all but the listed gaps with a better one."""
    calls, own = _Calls(), list(written())
    better = {_family(each.operator) for each in own}
    lines = {name_in(each): each for each in recorded()}
    kept = {name: line for name, line in lines.items() if name not in listed() or _family(name) not in better}
    for call in [*own, *map(from_text, kept.values())]:
        calls.add(call)
    return calls, kept


_DEVICES = ("CPU", "SparseCPU", "SparseCsrCPU", "QuantizedCPU", "NestedTensorCPU", "MkldnnCPU")
_NOT_WRITTEN_DOWN = ("Generator", "Storage", "Stream", "Context")


def reason(name: str, schema: Any) -> str:
    """Why there is no call of a schema, as far as that is known."""
    kinds = [str(each.type) for each in schema.arguments]
    if any(each == "t" or "Dict" in each or "List[t]" in each for each in kinds):
        return "takes lists and dicts of TorchScript's, which Python's do not become"
    if any(word in each for word in _NOT_WRITTEN_DOWN for each in kinds):
        return "takes an object that is not written down"
    known = pytorch._C._dispatch_has_kernel(name) and not name.endswith("out")
    if known and not any(pytorch._C._dispatch_has_computed_kernel_for_dispatch_key(name, each) for each in _DEVICES):
        return "PyTorch has no kernel for the CPU"
    if re.search("quantize|nested|int_repr|q_|qscheme|padded_tensor", name):
        return "takes or gives tensors of a kind that is not written down"
    return "no call was found"


def record(calls: _Calls, kept: Mapping[str, str]) -> None:
    """Write a call down for every schema for which there is one: of `written.txt`, of `kept`, or a new one."""
    kept = {**kept, **{each.operator: as_text(each, literal=True) for each in written()}}
    known = schemas()
    pool = _relatives(calls, known)
    lines, without = [], []
    for name, schema in known.items():
        if excluded(name) is not None:
            continue
        held = [each for each in calls.found.get(name, []) if _is_typed(each[1], schema)]
        line = kept.get(name) or next(filter(_is_good, _texts(held)), None)
        if line is None:
            line = _in_a_child(name, schema, held, pool[_family(name)])
        if (len(lines) + len(without)) % 250 == 0:
            print(len(lines), len(without), file=sys.stderr, flush=True)
        if line is None:
            without.append(name)
        else:
            lines.append(line)
    FILE.write_text("\n".join(lines) + "\n")
    reasons = {name: reason(name, known[name]) for name in without}
    (FILE.parent / "without_calls.json").write_text(json.dumps(reasons, indent=0) + "\n")
    print(f"{len(known)} schemas, {len(lines)} calls, {len(without)} without", file=sys.stderr)
