"""From annotations and comments of Python's to types of TorchScript's."""

from __future__ import annotations

import ast
import enum
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Callable
from typing import Any

from .._core.device import device
from .._core.dtype import dtype
from .._core.generator import Generator
from .._core.tensor import Tensor
from ..futures import Future
from ._types import (
    AnyType,
    BoolType,
    ClassType,
    ComplexType,
    DeviceObjType,
    DictType,
    EnumType,
    FloatType,
    FutureType,
    GeneratorType,
    InterfaceType,
    IntType,
    ListType,
    NoneType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)

Lookup = Callable[[str], Any]
"""What a name means where the function was written."""

_PLAIN: dict[Any, type[Type]] = {
    int: IntType,
    float: FloatType,
    bool: BoolType,
    str: StringType,
    complex: ComplexType,
    Tensor: TensorType,
    device: DeviceObjType,
    Generator: GeneratorType,
    dtype: IntType,
    Any: AnyType,
    None: NoneType,
    type(None): NoneType,
    inspect.Signature.empty: TensorType,
}
_COMMENT = re.compile(r"#\s*type:")
_OWN_NAMES = {"Tensor": Tensor, "int": int, "float": float, "bool": bool, "str": str, "complex": complex, "None": None}


def _is_generic(ann: Any, origin: type, name: str) -> bool:
    if ann is getattr(typing, name):
        raise RuntimeError(f"{name} without what is in it: write {name}[int], for instance")
    return typing.get_origin(ann) is origin


def is_tuple(ann: Any) -> bool:
    """Whether an annotation is of tuples."""
    return _is_generic(ann, tuple, "Tuple")


def is_list(ann: Any) -> bool:
    """Whether an annotation is of lists."""
    return _is_generic(ann, list, "List")


def is_dict(ann: Any) -> bool:
    """Whether an annotation is of dicts."""
    return _is_generic(ann, dict, "Dict")


def is_union(ann: Any) -> bool:
    """Whether an annotation has alternatives, None included."""
    return typing.get_origin(ann) in (typing.Union, types.UnionType)


def is_optional(ann: Any) -> bool:
    """Whether an annotation is of one type or None."""
    inner = typing.get_args(ann)
    return is_union(ann) and len(inner) == 2 and type(None) in inner


def try_ann_to_type(ann: Any, loc: Any, rcb: Lookup | None = None) -> Type | None:
    """The type that an annotation says; None if it says none."""
    if isinstance(ann, str):
        ann = _value(ann, rcb)
    try:
        plain = _PLAIN.get(ann)
    except TypeError:  # what cannot be a key is no plain type
        plain = None
    if plain is not None:
        return plain()
    inner = typing.get_args(ann)
    if is_union(ann):
        found = [ann_to_type(each, loc, rcb) for each in inner]
        if is_optional(ann):
            return OptionalType(next(each for each in found if not isinstance(each, NoneType)))
        return UnionType(found)
    if is_tuple(ann):
        return TupleType([ann_to_type(each, loc, rcb) for each in inner if each != ()])
    if is_list(ann):
        return ListType(ann_to_type(inner[0], loc, rcb))
    if is_dict(ann):
        return DictType(ann_to_type(inner[0], loc, rcb), ann_to_type(inner[1], loc, rcb))
    if typing.get_origin(ann) is Future:
        return FutureType(ann_to_type(inner[0], loc, rcb))
    return _type_of_class(ann) if isinstance(ann, type) else None


INTERFACE_MARK = "__torch_script_interface__"
"""The attribute of classes that say what others have; it is their name in scripts."""


def script_name(cls: type) -> str:
    """The name of a class in scripts."""
    own = f"{cls.__module__}.{cls.__qualname__}" if cls.__module__ != "__main__" else cls.__name__
    return f"__torch__.{own}"


def _type_of_class(cls: type) -> Type | None:
    """The type of a class of the program's; None for those of Python itself."""
    if cls.__module__ == "builtins":
        return None
    name = script_name(cls)
    if issubclass(cls, enum.Enum):
        return EnumType(name, cls)
    if INTERFACE_MARK in vars(cls):
        return InterfaceType(name, cls)
    return ClassType(name, cls)


def ann_to_type(ann: Any, loc: Any, rcb: Lookup | None = None) -> Type:
    """The type that an annotation says; a ValueError if it says none."""
    found = try_ann_to_type(ann, loc, rcb)
    if found is None:
        raise ValueError(f"Unknown type annotation: '{ann}'")
    return found


def _value(text: str, rcb: Lookup | None) -> Any:
    """What the text of an annotation means; only names, brackets and `|` may be in it."""
    return _meaning(ast.parse(text.strip(), mode="eval").body, rcb)


def _meaning(node: ast.expr, rcb: Lookup | None) -> Any:
    if isinstance(node, ast.Constant) and node.value is None:
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _value(node.value, rcb)
    if isinstance(node, ast.Name):
        found = rcb(node.id) if rcb is not None else None
        if found is None:
            found = getattr(typing, node.id, None) or _OWN_NAMES.get(node.id)
        return found
    if isinstance(node, ast.Attribute):
        return getattr(_meaning(node.value, rcb), node.attr)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return typing.Union[_meaning(node.left, rcb), _meaning(node.right, rcb)]  # noqa: UP007
    if isinstance(node, ast.Subscript):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return _meaning(node.value, rcb)[tuple(_meaning(each, rcb) for each in inner)]
    raise RuntimeError(f"{ast.unparse(node)!r} is no type annotation")


def get_type_line(source: str) -> str | None:
    """The comment in which a function's source says its types; one for each parameter becomes one for all."""
    lines = [(number, line) for number, line in enumerate(source.split("\n")) if _COMMENT.search(line)]
    lines = [(number, line) for number, line in lines if not _COMMENT.split(line)[1].strip().startswith("ignore")]
    if not lines:
        return None
    if len(lines) == 1:
        return lines[0][1].strip()
    closing = [line for _, line in lines if "->" in line]
    if len(closing) != 1:
        raise RuntimeError(
            "a function with types in several comments says its result in one of them: `# type: (...) ->`"
        )
    parameters = [_COMMENT.split(line)[1].strip() for _, line in lines if "->" not in line]
    return closing[0].replace("...", ", ".join(parameters))


def split_type_line(type_line: str) -> tuple[str, str]:
    """The texts of the parameters and of the result."""
    start = type_line.find("# type:") + len("# type:")
    arrow = type_line.find("->")
    if arrow < 0:
        raise RuntimeError("Syntax error in type annotation (couldn't find `->`)")
    return type_line[start:arrow].strip(), type_line[arrow + 2 :].strip()


def parse_type_line(type_line: str, rcb: Lookup, loc: Any) -> tuple[list[Type], Type]:
    """The types in a comment `# type: (int, Tensor) -> Tensor`."""
    parameters, result = split_type_line(type_line)
    node = ast.parse(parameters, mode="eval").body
    listed = node.elts if isinstance(node, ast.Tuple) else [node]
    return [ann_to_type(_meaning(each, rcb), loc, rcb) for each in listed], ann_to_type(_value(result, rcb), loc, rcb)


def try_real_annotations(fn: Callable[..., Any], loc: Any) -> tuple[list[Type], Type] | None:
    """The types of a function's annotations; None if it has none at all."""
    try:
        signature = inspect.signature(fn)
    except ValueError:  # built-in functions may not say
        return None
    annotations = [signature.return_annotation, *(each.annotation for each in signature.parameters.values())]
    if all(each is signature.empty for each in annotations):
        return None
    result, *parameters = [ann_to_type(each, loc) for each in annotations]
    return parameters, result


def get_signature(fn: Any, rcb: Lookup, loc: Any, is_method: bool) -> tuple[list[Type], Type] | None:
    """The types of a function, from its annotations or from a comment; None if there are none."""
    found = try_real_annotations(fn, loc)
    if found is not None and is_method:
        found = found[0][1:], found[1]
    if found is not None:
        return found
    try:
        source = textwrap.dedent(inspect.getsource(fn))
    except (OSError, TypeError):
        return None
    line = get_type_line(source)
    return None if line is None else parse_type_line(line, rcb, loc)


def get_param_names(fn: Any, n_args: int) -> list[str]:
    """The names of a function's parameters that may be given by place; numbers where it does not say them."""
    try:
        parameters = inspect.signature(fn if not hasattr(fn, "forward") else fn.forward).parameters.values()
    except ValueError:
        return [str(number) for number in range(n_args)]
    return [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]


def check_fn(fn: Any, loc: Any) -> None:
    """Raise an error if a function takes any number of arguments, or is none that was defined by `def`."""
    try:
        source = textwrap.dedent(inspect.getsource(fn))
    except (OSError, TypeError):
        return
    tree = ast.parse(source)
    if len(tree.body) != 1 or not isinstance(tree.body[0], (ast.FunctionDef, ast.ClassDef)):
        raise RuntimeError("Expected a single top-level function")
