"""The public face of the ops: which names exist, in which namespace, as function, method, in-place form and `out=`.

`@public` only notes what is to be published and returns the function itself, which the package's own code calls. What
users call is made around it on first use (`Published.function`): importing the package stays quick.
"""

from __future__ import annotations

import importlib
import linecache
from collections.abc import Callable
from typing import Any, TypeVar

from .._core.caller import GENERATED
from .._core.tensor import PLAIN_TYPES, Tensor
from . import catalogue
from .inplace import run_inplace
from .overrides import has_override, run_override

Function = Callable[..., Any]
Body = TypeVar("Body", bound=Function)
Writer = Callable[[Any, Any, tuple[Any, ...]], Any]
"""Stores a result, computed from operands, in what was given as `out=`."""

FUNCTIONS: dict[str, dict[str, Any]] = {"": {}}
"""namespace -> name -> function or `Published`: "" is the package itself, "linalg", "special", ... the others."""
METHODS: dict[str, Any] = {}
"""Every method that ops put on `Tensor`."""

_PUBLISHED: dict[Function, Published] = {}
_SCOPES: dict[str, dict[str, Any]] = {}
"""The global names of the functions made so far, by their public names: `body` is what such a function calls."""
_replaced: Callable[[str, Function], Function] | None = None
"""What stands for the bodies of public functions at present, if not they themselves; see `replace_bodies`."""

_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}
"""Keyword names of NumPy that PyTorch takes as well."""


class Published:
    """A function to be published: made on first use around the body that computes."""

    __slots__ = ("_function", "_make")

    def __init__(self, make: Callable[[], Function]) -> None:
        self._make = make
        self._function: Function | None = None

    @property
    def function(self) -> Function:
        """What users call."""
        if self._function is None:
            self._function = self._make()
        return self._function


class _FamilyMember:
    """Stands for a method until its family is imported, which puts the real one in its place."""

    __slots__ = ("family", "name")

    def __init__(self, name: str, family: str) -> None:
        self.name = name
        self.family = family

    def __get__(self, instance: Any, owner: type) -> Any:
        load_family(self.family)
        return getattr(owner if instance is None else instance, self.name)


class _FamilyProperty(_FamilyMember):
    """The same for a property, which may also be assigned to."""

    __slots__ = ()

    def __set__(self, instance: Any, value: Any) -> None:
        load_family(self.family)
        setattr(instance, self.name, value)


def load_family(family: str) -> None:
    """Import one file of ops."""
    importlib.import_module(f"flambeau._ops.{family}")


def load_all() -> None:
    """Import every family: afterwards `FUNCTIONS` and `METHODS` are complete."""
    families = set(catalogue.METHODS.values()).union(*(space.values() for space in catalogue.FUNCTIONS.values()))
    for family in sorted(families):
        load_family(family)


def place_family_members() -> None:
    """Put a stand-in on `Tensor` for each method of the catalogue."""
    for name, family in catalogue.METHODS.items():
        setattr(Tensor, name, (_FamilyProperty if name in catalogue.PROPERTIES else _FamilyMember)(name, family))


def function_named(space: str, name: str) -> Function:
    """The public function `name` of a namespace; a KeyError if there is none."""
    functions = FUNCTIONS.setdefault(space, {})
    if name not in functions:
        load_family(catalogue.FUNCTIONS[space][name])
    return resolved(functions[name])


class _LazyMethod:
    """Stands for a method until its first use, then puts the real one in its place."""

    __slots__ = ("name", "published")

    def __init__(self, published: Published, name: str) -> None:
        self.published = published
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        function = self.published.function
        setattr(Tensor, self.name, function)
        return function if instance is None else function.__get__(instance, owner)


def resolved(value: Any) -> Function:
    """The function behind an entry of `FUNCTIONS` or `METHODS`."""
    return value.function if isinstance(value, Published) else value


def namespace(name: str) -> tuple[Callable[[str], Any], list[str]]:
    """For a module that is a namespace of ops: its `__getattr__`, and the names for its `__all__`."""

    def __getattr__(attribute: str) -> Any:
        try:
            return function_named(name, attribute)
        except KeyError:
            raise AttributeError(f"module 'flambeau.{name}' has no attribute {attribute!r}") from None

    return __getattr__, sorted(catalogue.FUNCTIONS.get(name, ()))


def export(function: Function, *names: str) -> None:
    """Make `function` public under each of `names`; a dot separates the namespace: "special.expit"."""
    value = _PUBLISHED.get(function, function)
    for full_name in names:
        space, _, name = full_name.rpartition(".")
        FUNCTIONS.setdefault(space, {})[name] = value


def export_method(function: Function | property, *names: str) -> None:
    """Make `function` a method (or a property) of `Tensor` under each of `names`."""
    value: Any = function if isinstance(function, property) else _PUBLISHED.get(function, function)
    for name in names:
        METHODS[name] = value
        setattr(Tensor, name, _LazyMethod(value, name) if isinstance(value, Published) else value)


def public(
    *aliases: str,
    function: bool = True,
    method: bool = True,
    inplace: bool = False,
    out: bool | Writer = False,
    name: str | None = None,
) -> Callable[[Body], Body]:
    """Publish the decorated function of tensors.

    `function`, `method`: as `flambeau.name`, as `Tensor.name`. `inplace`: also `Tensor.name_` (and `flambeau.name_`).
    `out`: the function takes `out=`, which `write_out` fills, or the function given here. `aliases` are further names,
    with their namespace ("linalg.norm") or without; those without become methods too.
    """

    def decorate(body: Body) -> Body:
        own = name or body.__name__
        plain = [own, *(each for each in aliases if "." not in each)]
        home = own if function else next((each for each in aliases if "." in each), "")
        _PUBLISHED[body] = Published(lambda: _at_home(with_protocol(body, own, out, home or own), home))
        export(body, *aliases)
        if function:
            export(body, own)
        if method:
            export_method(body, *plain)
        if inplace:
            publish_inplace(body, *plain, function=function)
        return body

    return decorate


def _at_home(function: Function, name: str) -> Function:
    """`function`, which says that it is at home under its public name: pickles look for it there."""
    if name:
        space, _, function.__qualname__ = name.rpartition(".")
        function.__module__ = f"flambeau.{space}" if space else "flambeau"
        scope = _SCOPES[name] = function.__globals__
        if _replaced is not None:
            scope["body"] = _replaced(name, scope["own_body"])
    return function


def replace_bodies(names: frozenset[str], replacement: Callable[[str, Function], Function] | None) -> None:
    """Let the public functions `names` call `replacement(name, body)`, unless they are given `out=`; None: the body.

    `replacement` is asked about functions that are made later too, and then gives what it is not about back.
    """
    global _replaced
    _replaced = replacement
    for name in _SCOPES.keys() & names:
        scope = _SCOPES[name]
        own = scope["own_body"]
        scope["body"] = own if replacement is None else replacement(name, own)


def publish_inplace(op: Function, *names: str, function: bool = True) -> None:
    """Make `name_` for each of `names`: the in-place form of `op`."""
    first = names[0]

    def inplace(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if type(input) not in PLAIN_TYPES and has_override((input,)):
            return run_override(inplace, (input,), (input, *args), kwargs)  # type: ignore[no-any-return]
        return run_inplace(op, first, input, args, kwargs)

    inplace.__name__ = inplace.__qualname__ = f"{first}_"
    inplace.__doc__ = f"In-place form of `{first}`."
    inplace.__wrapped__ = op  # type: ignore[attr-defined]
    export_method(inplace, *(f"{each}_" for each in names))
    if function:
        export(inplace, *(f"{each}_" for each in names))


_TEMPLATE = """\
def {name}({parameters}):
    if {overridden}:
        return run_override({name}, ({tensors},), ({positional}), {{{keywords}}})
    {aliases}
    {dim}
    {compute}
    {out}
"""


def with_protocol(body: Function, name: str, out: bool | Writer, label: str) -> Function:
    """`body` behind a function of the same signature that also heeds `__torch_function__`, NumPy's names and `out=`.

    The function is written out as source, so that Python itself binds the arguments, and kept where debuggers find it,
    under `label`: `sum` is one function, `masked.sum` another.
    """
    import inspect

    signature = inspect.signature(body)
    parameters = list(signature.parameters.values())
    tensors = [each.name for each in parameters if _is_tensor(each)]
    takes_aliases = any(each.name in ("dim", "keepdim") for each in parameters)
    late_dim = "dim" if takes_aliases and _may_come_as_axis(parameters) else None
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
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            listed.append(f"**{each.name}")
            forwarded.append(f"**{each.name}")
            keywords.append(f"**{each.name}")
            takes_aliases = False
            continue
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not keyword_only:
            listed.append("*")
            keyword_only = True
        default = "" if each.default is inspect.Parameter.empty else f"=_{each.name}"
        if each.name == late_dim:
            default = "=MISSING"
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
    overridden = [
        f"(type({each.name}) not in PLAIN_TYPES and is_overriding({each.name}, {name!r}, {each.name!r}, {position}))"
        if _must_be_tensor(each)
        else f"(type({each.name}) not in PLAIN_TYPES and has_override(({each.name},)))"
        for position, each in enumerate(parameters, 1)
        if each.name in tensors
    ]
    call = f"body({', '.join(forwarded)})"
    source = _TEMPLATE.format(
        name=name,
        parameters=", ".join(listed),
        overridden=" or ".join(overridden) or "False",
        tensors=", ".join(tensors) or "None",
        positional=", ".join(positional) + ("," if positional else ""),
        keywords=", ".join(keywords),
        aliases=f"if numpy_names: return renamed(body, numpy_names, {', '.join(forwarded)})" if takes_aliases else "",
        dim=f"if dim is MISSING: raise dim_is_missing({name!r})" if late_dim else "",
        compute=f"if out is None: return {call}" if out else f"return {call}",
        out=f"return write_out(own_{call}, out, ({', '.join(tensors) or 'None'},))" if out else "",
    )
    source = "\n".join(line for line in source.splitlines() if line.strip()) + "\n"
    file = f"{GENERATED}function {label}>"
    scope = {
        "body": body, "own_body": body, "PLAIN_TYPES": PLAIN_TYPES, "has_override": has_override,
        "run_override": run_override, "is_overriding": is_overriding,
        "MISSING": _MISSING, "dim_is_missing": _dim_is_missing,
        "write_out": out if callable(out) else write_out, "renamed": renamed, **defaults,
    }  # fmt: skip
    exec(compile(source, file, "exec"), scope)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    wrapped: Function = scope[name]
    wrapped.__doc__ = body.__doc__
    wrapped.__module__ = body.__module__
    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapped.__wrapped__ = body  # type: ignore[attr-defined]
    return wrapped


_MISSING = object()


def _may_come_as_axis(parameters: list[Any]) -> bool:
    """Whether `dim` must be given and stands last of what must be: only then can `axis=` be given instead."""
    required = [
        each.name for each in parameters if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]
    return bool(required) and required[-1] == "dim"


def _dim_is_missing(name: str) -> TypeError:
    return TypeError(f'{name}() missing 1 required positional arguments: "dim"')


def is_overriding(value: Any, function: str, argument: str, position: int) -> bool:
    """Whether an argument that must be a tensor has a `__torch_function__` to be heeded; what is no tensor is
    refused.
    """
    if has_override((value,)):
        return True
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
        )
    return False


def _must_be_tensor(parameter: Any) -> bool:
    variadic = parameter.kind is parameter.VAR_POSITIONAL
    return parameter.annotation == "Tensor" and parameter.default is parameter.empty and not variadic


def _is_tensor(parameter: Any) -> bool:
    annotation = str(parameter.annotation)
    return "Tensor" in annotation or "Operand" in annotation


def renamed(body: Function, names: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Call `body` with NumPy's keyword names put into PyTorch's."""
    import inspect

    bound = inspect.signature(body).bind(*args, **kwargs)
    for name, value in names.items():
        ours = _NUMPY_NAMES.get(name, name)
        if ours not in bound.signature.parameters or ours == name:
            raise TypeError(f"{body.__name__}() got an unexpected keyword argument '{name}'")
        bound.arguments[ours] = value
    return body(*bound.args, **bound.kwargs)


def write_out(result: Any, out: Any, operands: tuple[Any, ...] = ()) -> Any:
    """Store a result, computed from `operands`, in the tensor(s) given as `out=`."""
    from .out import store

    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"out= must be a tuple of {len(result)} tensors")
        stored = tuple(store(each, into, operands) for each, into in zip(result, out, strict=True))
        return type(result)(*stored) if hasattr(result, "_fields") else stored
    return store(result, out, operands)


place_family_members()
