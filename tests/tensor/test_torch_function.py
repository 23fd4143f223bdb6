"""Subclasses of `Tensor` and foreign classes with a `__torch_function__`."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


def logging_class(T: Any, log: list[str]) -> Any:
    class Logged(T.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    return Logged


def plain_class(T: Any) -> Any:
    class Plain(T.Tensor):  # type: ignore[misc]
        pass

    return Plain


CALLS = """
x + 1|1 + x|x * x|T.add(x, 1)|T.add(T.ones(2), x)|x.exp()|x.sum()|x[0]|x[:1]|x.view(2)|T.cat([x, x])
T.cat([T.ones(1), x])|T.stack((x, x))|x.clone()|x.to(T.float64)|x @ x|x.unbind()|x.max(0).values
T.where(x > 0, x, T.zeros(2))|x.softmax(0)|-x|abs(x)|x == 1|x.t()|x.reshape(2, 1)|x.add_(1)|T.zeros_like(x)
T.nn.functional.relu(x)|T.linalg.vector_norm(x)
"""


@pytest.mark.parametrize("call", CALLS.strip().replace("\n", "|").split("|"))
@differential
def test_results_keep_the_subclass(T: Any, call: str) -> Any:
    x = T.tensor([1.0, 2.0]).as_subclass(plain_class(T))
    result = eval(call, {"T": T, "x": x, "abs": abs})
    first = result[0] if isinstance(result, (tuple, list)) else result
    return type(first).__name__, first.tolist(), isinstance(first, T.Tensor)


@differential
def test_override_sees_every_call(T: Any) -> Any:
    log: list[str] = []
    x = T.tensor([1.0, 2.0]).as_subclass(logging_class(T, log))
    results = [T.exp(x), T.sum(x), T.matmul(x, x), x.clone(), T.cat([x, x]), x.type()]
    return log, [type(each).__name__ for each in results]


@differential
def test_gradients_through_a_subclass(T: Any) -> Any:
    leaf = T.tensor([1.0, 2.0], requires_grad=True)
    x = leaf.as_subclass(plain_class(T))
    (x * x).sum().backward()
    return leaf.grad


def foreign_class(result: Any) -> Any:
    class Foreign:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return result

    return Foreign


@differential
def test_foreign_objects_take_part(T: Any) -> Any:
    foreign = foreign_class("mine")()
    return (
        T.add(foreign, 1),
        T.add(T.ones(1), foreign),
        T.ones(1) + foreign,
        T.cat([T.ones(1), foreign]),
        T.sum(foreign),
        T.mean(foreign, 0),
    )


@differential
def test_nobody_implements_it(T: Any) -> Any:
    refusing = foreign_class(NotImplemented)()
    return outcome(lambda: T.add(refusing, 1), "no implementation found for")[:2]


@differential
def test_subclasses_come_first(T: Any) -> Any:
    order: list[str] = []

    class Base(T.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append(cls.__name__)
            return NotImplemented

    class Derived(Base):
        pass

    base, derived = T.ones(1).as_subclass(Base), T.ones(1).as_subclass(Derived)
    refused = outcome(lambda: T.add(base, derived))[:2]
    return order, refused


@differential
def test_disabled(T: Any) -> Any:
    log: list[str] = []
    x = T.tensor([1.0]).as_subclass(logging_class(T, log))
    disable = getattr(T, "DisableTorchFunctionSubclass", None) or T._C.DisableTorchFunctionSubclass
    with disable():
        result = x + 1
    return log, type(result).__name__


_MEMBERS = {
    "len": len, "repr": repr, "float": float, "int": int, "bool": bool, "contains": lambda x: 1.0 in x,
    "complex": complex, "format": lambda x: format(x, ""), "reversed": reversed, "iter": list, "dir": dir,
    "array": lambda x: x.__array__(), "dlpack": lambda x: x.__dlpack__(), "place": lambda x: x.__dlpack_device__(),
    "reduce": lambda x: x.__reduce_ex__(2), "ndimension": lambda x: x.ndimension(), "nelement": lambda x: x.nelement(),
    "storage_offset": lambda x: x.storage_offset(), "get_device": lambda x: x.get_device(),
    "new_tensor": lambda x: x.new_tensor([1.0]), "retain_grad": lambda x: x.requires_grad_().retain_grad(),
    "is_inference": lambda x: x.is_inference(), "is_view": lambda x: x._is_view(),
    "size": lambda x: x.size(), "dim": lambda x: x.dim(), "numel": lambda x: x.numel(), "stride": lambda x: x.stride(),
    "set": lambda x: setattr(x, "requires_grad", True), "delete": lambda x: delattr(x, "grad"),
    "backward": lambda x: x.requires_grad_().sum().backward(), "element_size": lambda x: x.element_size(),
}  # fmt: skip
_ATTRIBUTES = """
H T _backward_hooks _base _version data device dtype grad grad_dtype grad_fn is_cpu is_cuda is_ipu is_leaf is_maia
is_meta is_mkldnn is_mps is_mtia is_nested is_quantized is_sparse is_sparse_csr is_vulkan is_xla is_xpu itemsize layout
mH mT name nbytes ndim output_nr real requires_grad retains_grad shape
"""
_OPERATORS = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "eq", "ne", "lt", "gt", "le", "ge", "iadd",
    "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow",
]  # fmt: skip
_OF_INTEGERS = ["and_", "or_", "xor", "lshift", "rshift", "iand", "ior", "ixor", "ilshift", "irshift"]


def _asked_for(T: Any, functions: dict[str, Any], values: Any = ((2.0,),)) -> dict[str, Any]:
    """Of each call what the class is asked for, and the class of the result."""
    asked: list[Any] = []

    class Own(T.Tensor):  # type: ignore[misc, name-defined]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    seen = {}
    for name, function in functions.items():
        asked.clear()
        result = function(T.tensor(values).as_subclass(Own))
        seen[name] = (list(asked), type(result).__name__)
    return seen


@differential
def test_a_class_is_asked_for_members_too(T: Any) -> Any:
    attributes = {name: operator.attrgetter(name) for name in _ATTRIBUTES.split()}
    return _asked_for(T, _MEMBERS), _asked_for(T, attributes)


@differential
def test_operators_are_methods_to_a_class(T: Any) -> Any:
    def applied(name: str, left: Any, right: Any) -> Any:
        return lambda x: getattr(operator, name)(left(x), right(x))

    def asked(names: list[str], values: list[Any]) -> Any:
        number = values[0]
        tensor = T.tensor(values)
        same, given, other = (lambda x: x), (lambda x: number), (lambda x: tensor.clone())
        pairs = [(same, same), (same, given), (other, same), (same, other)]
        found = [_asked_for(T, {name: applied(name, *pair) for name in names if name != "matmul" or pair[1] is not given}, values) for pair in pairs]  # noqa: E501  # fmt: skip
        reflected = [name for name in names if name[0] != "i" and name != "matmul"]
        return found, _asked_for(T, {name: applied(name, given, same) for name in reflected}, values)

    return asked(_OPERATORS, [2.0]), asked(_OF_INTEGERS, [3])


@differential
def test_a_gradient_keeps_its_class(T: Any) -> Any:
    x = T.tensor([1.0]).as_subclass(logging_class(T, []))
    x.grad = T.ones(1)
    return type(x.grad).__name__


def _unusual(T: Any, name: str) -> Any:
    eye = T.eye(2)
    made = {
        "sparse": eye.to_sparse,
        "compressed": eye.to_sparse_csr,
        "opaque": eye.to_mkldnn,
        "quantized": lambda: T.quantize_per_tensor(eye, 1.0, 0, T.qint8),
        "parameter": lambda: T.nn.Parameter(eye),
    }
    return made[name]()


@pytest.mark.parametrize("name", ["sparse", "compressed", "opaque", "quantized", "parameter"])
@differential
def test_unusual_tensors_are_no_users_class(T: Any, name: str) -> Any:
    x = _unusual(T, name)
    overrides = T.overrides

    @overrides.wrap_torch_function(lambda value: (value,))
    def same(value: Any) -> Any:
        return value

    return (
        overrides.has_torch_function((x,)),
        overrides.has_torch_function_unary(x),
        overrides.has_torch_function_variadic(x, x),
        T._C._has_torch_function((x, 1)),
        overrides.is_tensor_like(x),
        same(x) is x,
    )


@differential
def test_gradients_through_opaque_tensors(T: Any) -> Any:
    x = T.eye(2, requires_grad=True)
    return T.autograd.grad(x.to_mkldnn(), x, T.ones(2, 2).to_mkldnn()), T.autograd.grad(
        x.to_mkldnn().to_dense().sum(), x
    )


ATTRIBUTES = ["T", "mT", "H", "mH", "real", "imag", "data", "grad", "_base", "is_leaf", "shape", "dtype", "device"]


@pytest.mark.parametrize("name", ATTRIBUTES)
@differential
def test_attributes_of_subclasses_are_of_their_class(T: Any, name: str) -> Any:
    class Plain(T.Tensor):  # type: ignore[misc]
        pass

    matrix = T.eye(2).as_subclass(Plain)
    compound = T.eye(2).to(T.complex64).as_subclass(Plain)
    return [
        type(getattr(each, name)).__name__
        for each in (matrix, compound, compound.conj(), matrix[0:1], T.nn.Parameter(T.eye(2)), matrix.requires_grad_())
        if name != "imag" or each.is_complex()
    ]


def _made_of_tensors(T: Any, x: Any) -> dict[str, Any]:
    one, two = x[0, 0], x[0, 0] + 1
    return {
        "linspace": lambda: T.linspace(one, two, 3),
        "linspace, by name": lambda: T.linspace(0.0, end=two, steps=3),
        "logspace": lambda: T.logspace(one, 2.0, 3),
        "normal": lambda: T.normal(x, 1.0),
        "normal, of widths": lambda: T.normal(0.0, x),
        "normal, by name": lambda: T.normal(mean=x, std=x),
        "multi_dot": lambda: T.linalg.multi_dot([x, x, x]),
        "multi_dot, the last": lambda: T.linalg.multi_dot([T.eye(2), T.eye(2), x]),
    }


@pytest.mark.parametrize("name", _made_of_tensors(flambeau, flambeau.eye(2)))
@differential
def test_factories_ask_the_classes_of_their_arguments(T: Any, name: str) -> Any:
    log: list[str] = []
    logged = logging_class(T, log)
    found = [type(_made_of_tensors(T, T.eye(2).as_subclass(cls))[name]()).__name__ for cls in (plain_class(T), logged)]
    return found, log[-1]
