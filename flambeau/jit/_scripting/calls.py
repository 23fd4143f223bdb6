"""How calls are written: of modules, methods, functions of the program, and of PyTorch's operators."""

from __future__ import annotations

import ast
import builtins
import inspect
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from ..._dispatch.public.operator_forms import OTHERWISE, OperatorForm, forms_of_functional
from ...nn.modules.module import Module
from .._async import fork
from .._emission import CASTS, SIZED
from .._language.calls import has_operator
from .._trace import ScriptFunction
from ..annotations import annotate
from .objects import is_written
from .stand_ins import FUNCTIONS
from .static import UNKNOWN

if TYPE_CHECKING:
    from .translate import Translation

_FREE = frozenset({len, range, int, float, bool, str, print, min, max, abs, sum, sorted, list, enumerate, zip, complex,
                   all, any, round, ord, chr})  # fmt: skip
"""Built-in functions that the language has under the same names."""

_SCRIPTING = __name__.rpartition(".")[0]
"""Where functions are that stand in for others: they are part of the program."""

_NO_OPERATORS = frozenset({"asarray", "frombuffer", "grid_sample", "lp_pool1d", "lp_pool2d", "lp_pool3d", "lu",
                           "pack_padded_sequence", "sizes", "unique"})  # fmt: skip
"""Functions that are no operators in PyTorch."""

_OTHER_NAMES = {"logsigmoid": "log_sigmoid", "negative": "neg", "absolute": "abs"}


def call(translation: Translation, node: ast.Call) -> ast.expr:
    """A call, translated."""
    function = translation.scope.value(node.func)
    if isinstance(function, ScriptFunction):
        function = inspect.unwrap(function)  # of a traced one there is no source: it is refused below
    if isinstance(node.func, ast.Attribute):
        owner = translation.scope.value(node.func.value)
        if function is UNKNOWN and translation.objects.class_of(node.func.value) is not None:
            target = ast.Attribute(translation.expression(node.func.value), node.func.attr, ast.Load())
            return ast.Call(target, *_arguments(translation, node))
        if function is UNKNOWN or isinstance(owner, (str, list, dict, tuple)):
            return _of_value(translation, node.func, node)
    if function is UNKNOWN:
        raise translation.refuse(node, "which function this calls is not known before the run")
    if isinstance(function, Module):
        return _of_module(translation, function, "forward", node)
    if isinstance(function, MethodType) and isinstance(function.__self__, Module):
        return _of_module(translation, function.__self__, function.__func__.__name__, node)
    if function is annotate and len(node.args) == 2:
        hint = translation.hint(node.args[0])
        return _plain("annotate", [ast.parse(translation.type_text(hint, node), mode="eval").body,
                                   translation.expression(node.args[1])])  # fmt: skip
    if function is builtins.isinstance or getattr(function, "__qualname__", "") == "isinstance":
        return _isinstance(translation, node)
    if is_written(function):
        return _constructed(translation, function, node)
    if function is fork and node.args:
        return _forked(translation, node)
    if isinstance(function, type) or function in _FREE or getattr(function, "__module__", "") == "math":
        return _builtin(translation, function, node)
    name = getattr(function, "__name__", "")
    space = getattr(function, "__module__", "") or ""
    if space.partition(".")[0] == __name__.partition(".")[0]:
        return _of_package(translation, function, name, space, node)
    if isinstance(function, FunctionType):
        modifier = getattr(function, "_torchscript_modifier", "")
        if modifier.startswith(("ignore", "unused")):
            raise translation.refuse(node, f"{name} is marked as one that is not compiled")
        return _plain(translation.home.function(function), *_arguments(translation, node))
    raise translation.refuse(node, f"TorchScript cannot call {name or type(function).__name__}")


def _plain(name: str, args: list[ast.expr], keywords: list[ast.keyword] | None = None) -> ast.expr:
    return ast.Call(ast.parse(name, mode="eval").body, args, keywords or [])


def _arguments(translation: Translation, node: ast.Call) -> tuple[list[ast.expr], list[ast.keyword]]:
    keywords = []
    for each in node.keywords:
        if each.arg is None:
            raise translation.refuse(node, "TorchScript has no calls with **")
        keywords.append(ast.keyword(each.arg, translation.expression(each.value)))
    return translation.several(node.args), keywords


def _constructed(translation: Translation, cls: type, node: ast.Call) -> ast.expr:
    """A new object of a class of the program; of named tuples, archives keep no defaults: they are written out."""
    args, keywords = _arguments(translation, node)
    if not hasattr(cls, "_fields"):
        return _plain(translation.home.class_named(cls), args, keywords)
    bound = inspect.signature(cls).bind(*args, **{str(each.arg): each.value for each in keywords})
    bound.apply_defaults()
    given = [each if isinstance(each, ast.expr) else translation.literal(each, node) for each in bound.args]
    return _plain(translation.home.class_named(cls), given)


def _forked(translation: Translation, node: ast.Call) -> ast.expr:
    function = inspect.unwrap(translation.scope.value(node.args[0]))
    is_own = getattr(function, "__module__", "").partition(".")[0] == __name__.partition(".")[0]
    if not isinstance(function, FunctionType) or is_own or node.keywords:
        raise translation.refuse(node, "what is forked must be a function of the program, called by position")
    name = translation.home.function(function)
    return _plain("fork", [ast.parse(name, mode="eval").body, *translation.several(node.args[1:])])


def _of_module(translation: Translation, module: Module, name: str, node: ast.Call) -> ast.expr:
    path = translation.home.path_of(translation.owner, module)
    if path is None:
        raise translation.refuse(node, "this module is not inside of the one whose method calls it")
    translation.home.method(module, name)
    return ast.Call(ast.Attribute(path, name, ast.Load()), *_arguments(translation, node))


def _of_value(translation: Translation, method: ast.Attribute, node: ast.Call) -> ast.expr:
    """A method of a tensor, list, dict or string: the operator of that name."""
    name, owner = method.attr, translation.expression(method.value)
    args, keywords = _arguments(translation, node)
    if name in CASTS and not args and not keywords:
        return _plain("torch.to", [owner, ast.Constant(CASTS[name])])
    if name == "format":
        return _plain("torch.format", [owner, *args])
    if name in SIZED and len(args) > 1:
        args = [ast.List(args, ast.Load())]
    if not has_operator(name) or name in _NO_OPERATORS:
        raise translation.refuse(node, f"there is no operator called {name}")
    return _plain(f"torch.{name}", [owner, *args], keywords)


def _isinstance(translation: Translation, node: ast.Call) -> ast.expr:
    value = translation.expression(node.args[0])
    kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
    texts = [translation.type_text(translation.hint(each), node) for each in kinds]
    types = [ast.parse(each, mode="eval").body for each in texts]
    return _plain("isinstance", [value, types[0] if len(types) == 1 else ast.Tuple(types, ast.Load())])


def _builtin(translation: Translation, function: Any, node: ast.Call) -> ast.expr:
    name = function.__name__
    args, keywords = _arguments(translation, node)
    if getattr(function, "__module__", "") == "math":
        return _plain(f"torch.{name}", args, keywords)
    if function is float and isinstance(node.args[0], ast.Constant):
        return _plain("float", args)
    if function not in _FREE:
        raise translation.refuse(node, f"TorchScript has no {name}")
    return _plain(name, args, keywords)


def _of_package(translation: Translation, function: Any, name: str, space: str, node: ast.Call) -> ast.expr:
    """A function of the package: one of PyTorch's operators."""
    form = forms_of_functional().get(name)
    if form is not None:
        return _by_form(translation, form, node)
    if function in FUNCTIONS or space.startswith(_SCRIPTING):
        return _plain(translation.home.function(FUNCTIONS.get(function, function)), *_arguments(translation, node))
    args, keywords = _arguments(translation, node)
    if name == "interpolate":
        return _plain("torch.__interpolate", args, keywords)
    if name == "einsum" and not isinstance(args[1], ast.List):
        args = [args[0], ast.List(args[1:], ast.Load())]
    name = _OTHER_NAMES.get(name, name)
    if name in SIZED and len(args) > 2:
        args = [args[0], ast.List(args[1:], ast.Load())]
    if not has_operator(name) or name in _NO_OPERATORS:
        raise translation.refuse(node, f"PyTorch has no operator for {name}")
    return _plain(f"torch.{name}", args, [each for each in keywords if each.arg != "inplace"])


def _by_form(translation: Translation, form: OperatorForm, node: ast.Call) -> ast.expr:
    """A function of `nn.functional`, as the operator that it is."""
    args, keywords = _arguments(translation, node)
    given = form.given(args, {str(each.arg): each.value for each in keywords})
    given["cudnn_enabled"] = True
    for name in ("inplace", "reduction", *OTHERWISE):
        if isinstance(given.get(name), ast.expr):
            try:
                given[name] = ast.literal_eval(given[name])
            except ValueError:
                raise translation.refuse(node, f"{name} must be known before the run") from None
    other = form.another(given)
    if other is not None:
        raise translation.refuse(node, f"{form.name} with {other} is not written")
    values: list[ast.expr] = []
    by_name: list[ast.keyword] = []
    for each in form.arguments:
        value = given[each.name]
        value = each.as_given(value.value if isinstance(value, ast.Constant) else value)
        if value == []:
            written = ast.parse("annotate(List[int], [])", mode="eval").body
        else:
            written = value if isinstance(value, ast.expr) else translation.literal(value, node)
        if each.by_name:
            by_name.append(ast.keyword(each.name, written))
        else:
            values.append(written)
    return _plain(f"torch.{form.operator_for(given.get('inplace'))}", values, by_name)
