"""The public face of the ops: which names exist, in which namespace, as function, method, in-place form and `out=`."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from typing import Any

from .._core.caller import GENERATED
from .._core.tensor import PLAIN_TYPES, Tensor
from .inplace import run_inplace
from .overrides import has_override, run_override

Function = Callable[..., Any]

FUNCTIONS: dict[str, dict[str, Function]] = {"": {}}
"""namespace -> name -> function: "" is the package itself, "linalg", "special", "nn.functional", ... the others."""
METHODS: dict[str, Function] = {}

_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}
"""Keyword names of NumPy that PyTorch takes as well."""


def export(function: Function, *names: str) -> None:
    """Make `function` public under each of `names`; a dot separates the namespace: "special.expit"."""
    for full_name in names:
        namespace, _, name = full_name.rpartition(".")
        FUNCTIONS.setdefault(namespace, {})[name] = function


def export_method(function: Function, *names: str) -> None:
    """Make `function` a method of `Tensor` under each of `names`."""
    for name in names:
        METHODS[name] = function
        setattr(Tensor, name, function)


def public(
    *aliases: str,
    function: bool = True,
    method: bool = True,
    inplace: bool = False,
    out: bool = False,
    name: str | None = None,
) -> Callable[[Function], Function]:
    """Publish the decorated function of tensors.

    `function`, `method`: as `flambeau.name`, as `Tensor.name`. `inplace`: also `Tensor.name_` (and `flambeau.name_`).
    `out`: the function takes `out=`. `aliases` are further names, with their namespace ("linalg.norm") or without; those
    without become methods too.
    """

    def decorate(body: Function) -> Function:
        own = name or body.__name__
        wrapped = with_protocol(body, own, out)
        if function:
            export(wrapped, own)
        export(wrapped, *aliases)
        if method:
            export_method(wrapped, own, *(each for each in aliases if "." not in each))
        if inplace:
            publish_inplace(wrapped, own, *(each for each in aliases if "." not in each), function=function)
        return wrapped

    return decorate


def publish_inplace(op: Function, *names: str, function: bool = True) -> None:
    """Make `name_` for each of `names`: the in-place form of `op`."""
    first = names[0]

    def inplace(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if type(input) not in PLAIN_TYPES and has_override((input,)):
            return run_override(inplace, (input,), (input, *args), kwargs)  # type: ignore[no-any-return]
        return run_inplace(op, first, input, args, kwargs)

    inplace.__name__ = inplace.__qualname__ = f"{first}_"
    inplace.__doc__ = f"In-place form of `{first}`."
    inplace.__signature__ = _without_out(op)  # type: ignore[attr-defined]
    export_method(inplace, *(f"{each}_" for each in names))
    if function:
        export(inplace, *(f"{each}_" for each in names))


def _without_out(op: Function) -> inspect.Signature:
    signature = inspect.signature(op)
    return signature.replace(parameters=[each for name, each in signature.parameters.items() if name != "out"])


_TEMPLATE = """\
def {name}({parameters}):
    if {overridden}:
        return run_override({name}, ({tensors},), ({positional}), {{{keywords}}})
    {aliases}
    result = body({forwarded})
    {out}
    return result
"""


def with_protocol(body: Function, name: str, out: bool) -> Function:
    """`body` behind a function of the same signature that also heeds `__torch_function__`, NumPy's names and `out=`.

    The function is written out as source, so that Python itself binds the arguments, and kept where debuggers find it.
    """
    signature = inspect.signature(body)
    parameters = list(signature.parameters.values())
    tensors = [each.name for each in parameters if _is_tensor(each)]
    takes_aliases = any(each.name in ("dim", "keepdim") for each in parameters)
    if out:
        parameters.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
    defaults = {f"_{each.name}": each.default for each in parameters if each.default is not inspect.Parameter.empty}
    listed, forwarded, positional, keywords = [], [], [], []
    keyword_only = False
    for each in parameters:
        if each.kind is inspect.Parameter.VAR_POSITIONAL:
            listed.append(f"*{each.name}")
            forwarded.append(f"*{each.name}")
            positional.append(f"*{each.name}")
            keyword_only = True
            continue
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not keyword_only:
            listed.append("*")
            keyword_only = True
        default = "" if each.default is inspect.Parameter.empty else f"=_{each.name}"
        listed.append(f"{each.name}{default}")
        if each.kind is inspect.Parameter.KEYWORD_ONLY:
            keywords.append(f"{each.name!r}: {each.name}")
            if each.name != "out" or not out:
                forwarded.append(f"{each.name}={each.name}")
        else:
            positional.append(each.name)
            forwarded.append(each.name)
    if takes_aliases:
        listed.append("**numpy_names")
    source = _TEMPLATE.format(
        name=name,
        parameters=", ".join(listed),
        overridden=" or ".join(
            f"({each}.__class__ not in PLAIN_TYPES and has_override(({each},)))" for each in tensors
        )
        or "False",
        tensors=", ".join(tensors) or "None",
        positional=", ".join(positional) + ("," if positional else ""),
        keywords=", ".join(keywords),
        aliases="if numpy_names: return renamed(body, numpy_names, " + ", ".join(forwarded) + ")" if takes_aliases else "",
        forwarded=", ".join(forwarded),
        out="if out is not None: return write_out(result, out)" if out else "",
    )
    source = "\n".join(line for line in source.splitlines() if line.strip()) + "\n"
    file = f"{GENERATED}function {name}>"
    scope = {
        "body": body, "PLAIN_TYPES": PLAIN_TYPES, "has_override": has_override, "run_override": run_override,
        "write_out": write_out, "renamed": renamed, **defaults,
    }  # fmt: skip
    exec(compile(source, file, "exec"), scope)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    wrapped: Function = scope[name]
    wrapped.__doc__ = body.__doc__
    wrapped.__module__ = body.__module__
    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapped.__wrapped__ = body  # type: ignore[attr-defined]
    return wrapped


def _is_tensor(parameter: inspect.Parameter) -> bool:
    annotation = str(parameter.annotation)
    return "Tensor" in annotation or "Operand" in annotation


def renamed(body: Function, names: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Call `body` with NumPy's keyword names put into PyTorch's."""
    bound = inspect.signature(body).bind(*args, **kwargs)
    for name, value in names.items():
        ours = _NUMPY_NAMES.get(name, name)
        if ours not in bound.signature.parameters or ours == name:
            raise TypeError(f"{body.__name__}() got an unexpected keyword argument '{name}'")
        bound.arguments[ours] = value
    return body(*bound.args, **bound.kwargs)


def write_out(result: Any, out: Any) -> Any:
    """Store a result in the tensor(s) given as `out=`."""
    from .out import store

    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"out= must be a tuple of {len(result)} tensors")
        stored = tuple(store(each, into) for each, into in zip(result, out, strict=True))
        return type(result)(*stored) if hasattr(result, "_fields") else stored
    return store(result, out)
