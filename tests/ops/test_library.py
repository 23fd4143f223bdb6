"""`torch.library`: operators of one's own, their schemas, rules and checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import flambeau
from flambeau.ops._custom import OPERATORS
from flambeau.ops._schema import parse
from tests.support.differential import differential, outcome

NAMES = iter(range(10_000))
"""No operator is defined twice, in neither library."""


@pytest.fixture(autouse=True)
def _operators() -> Iterator[None]:
    before = {name: dict(each) for name, each in OPERATORS.items()}
    yield
    OPERATORS.clear()
    OPERATORS.update(before)


def _scale(T: Any, name: str, *, has_fake: bool = True, has_derivative: bool = True) -> Any:
    def scale(x: Any, factor: Any = 2.0) -> Any:
        return x * factor

    scale.__annotations__ = {"x": T.Tensor, "factor": float, "return": T.Tensor}
    op = T.library.custom_op(f"mine{T.__name__}::{name}", scale, mutates_args=())

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factor = inputs[1]

    if has_fake:
        op.register_fake(lambda x, factor=2.0: T.empty_like(x))
    if has_derivative:
        op.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=setup_context)
    return op


def _functions(T: Any) -> dict[str, Callable[..., Any]]:
    """Functions with annotations that become schemas, or do not."""
    Tensor: Any = T.Tensor

    def everything(
        x: Any, y: Any, n: Any, d: Any = 1.5, s: Any = "a", b: Any = True, many: Any = None, other: Any = None,
        dt: Any = None, dev: Any = None, sc: Any = 2, fs: Any = None, *, kw: Any = None,
    ) -> Any:  # fmt: skip
        pass

    everything.__annotations__ = {
        "x": Tensor, "y": Tensor | None, "n": int, "d": float, "s": str, "b": bool, "many": Sequence[int],
        "other": Sequence[int] | None, "dt": T.dtype | None, "dev": T.device | None,
        "sc": int | float | bool, "fs": list[float], "kw": int | None, "return": tuple[Tensor, Tensor],
    }  # fmt: skip

    def annotated(**annotations: Any) -> Callable[..., Any]:
        def function(x: Any) -> Any:
            pass

        function.__annotations__ = {name.rstrip("_"): each for name, each in annotations.items()}
        return function

    return {
        "everything": everything,
        "nothing back": annotated(x=Tensor, return_=None),
        "a list": annotated(x=list[Tensor], return_=list[Tensor]),
        "a number": annotated(x=Tensor, return_=int),
        "no annotation": annotated(return_=Tensor),
        "no result": annotated(x=Tensor),
        "a dict": annotated(x=dict, return_=Tensor),
    }


@differential
def test_infer_schema(T: Any) -> Any:
    infer = T.library.infer_schema
    functions = _functions(T)
    everything = functions["everything"]
    words = ("must have a type annotation", "No return type annotation", "unsupported type", "were not found in")
    return {
        **{name: outcome(lambda each=each: infer(each, mutates_args=())) for name, each in functions.items()},
        "changed": infer(everything, mutates_args={"x"}),
        "unknown": infer(everything, mutates_args="unknown"),
        "named": infer(functions["a number"], mutates_args={"x"}, op_name="mine"),
        "wrong": outcome(lambda: infer(everything, mutates_args={"zz"}), *words),
        "words": [outcome(lambda n=n: infer(functions[n], mutates_args=()), *words)
                  for n in ("no annotation", "no result", "a dict")],
    }  # fmt: skip


@differential
def test_schema_objects(T: Any) -> Any:
    op = _scale(T, f"described{next(NAMES)}")
    schema = op._opoverload._schema
    return {
        "arguments": [
            (each.name, str(each.type), each.default_value, each.kwarg_only, each.has_default_value())
            for each in schema.arguments
        ],
        "returns": [str(each.type) for each in schema.returns],
        "flags": (schema.overload_name, schema.is_mutable),
        "text": str(schema).partition("(")[2],
        "overloads": op._opoverload.overloadpacket.overloads(),
    }


SCHEMAS = [
    "a::f(Tensor x) -> Tensor",
    "a::f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    "a::f(Tensor(a!)[] xs, int[2] size=[1, 2], str mode=\"two, three\", float? p=None) -> (Tensor, Tensor[])",
    "a::f(Tensor? x=None, *, ScalarType? dtype=None, bool flag=False) -> ()",
    "a::f(Tensor x, float k=2.) -> Tensor",
]  # fmt: skip


@differential
@pytest.mark.parametrize("text", SCHEMAS)
def test_schemas_are_read_and_written(T: Any, text: str) -> Any:
    read = parse(text) if T is flambeau else T._C.parse_schema(text)
    return str(read), [(each.name, each.kwarg_only) for each in read.arguments], read.is_mutable


@differential
def test_calls_and_their_mistakes(T: Any) -> Any:
    op = _scale(T, f"called{next(NAMES)}")
    x = T.arange(3.0).requires_grad_()
    op(x, 3.0).sum().backward()
    return {
        "values": (op(x.detach()), op(x.detach(), factor=4.0), x.grad, op(x.detach().to("meta")).shape),
        "not a tensor": outcome(lambda: op("a"), "Expected a value of type 'Tensor' for argument 'x'"),
        "unknown": outcome(lambda: op(x, q=1), "Unknown keyword argument 'q'"),
        "missing": outcome(lambda: op(), "missing value for argument 'x'"),
    }


@differential
def test_what_is_not_registered(T: Any) -> Any:
    op = _scale(T, f"bare{next(NAMES)}", has_fake=False, has_derivative=False)
    result = op(T.ones(2, requires_grad=True))
    return {
        "requires grad": result.requires_grad,
        "backward": outcome(lambda: result.sum().backward(), "no autograd formula was registered"),
        "meta": outcome(lambda: op(T.ones(2, device="meta")), "There was no fake impl registered"),
    }


@differential
def test_changed_arguments_and_results_that_are_arguments(T: Any) -> Any:
    def add_one(x: Any) -> Any:
        x.add_(1)

    def same(x: Any) -> Any:
        return x

    add_one.__annotations__ = {"x": T.Tensor, "return": None}
    same.__annotations__ = {"x": T.Tensor, "return": T.Tensor}
    number = next(NAMES)
    change = T.library.custom_op(f"mine{T.__name__}::add_one{number}", add_one, mutates_args={"x"})
    identity = T.library.custom_op(f"mine{T.__name__}::same{number}", same, mutates_args=())
    x = T.zeros(2)
    version = x._version
    change(x)
    return x, x._version > version, outcome(lambda: identity(x), "may not alias any inputs")


@differential
def test_opcheck(T: Any) -> Any:
    good, bare = _scale(T, f"good{next(NAMES)}"), _scale(T, f"bare{next(NAMES)}", has_fake=False)
    wrong = _scale(T, f"wrong{next(NAMES)}")
    wrong.register_fake(lambda x, factor=2.0: x.new_empty(7))

    def sneaky(x: Any) -> Any:
        x.add_(1)
        return x.clone()

    sneaky.__annotations__ = {"x": T.Tensor, "return": T.Tensor}
    changing = T.library.custom_op(f"mine{T.__name__}::sneaky{next(NAMES)}", sneaky, mutates_args=())
    changing.register_fake(lambda x: T.empty_like(x))
    x = T.ones(2)
    check = T.library.opcheck
    answers = check(bare, (x,), raise_exception=False)
    return {
        "good": check(good, (T.ones(2, requires_grad=True), 3.0)),
        "one": check(good, (x,), test_utils="test_schema"),
        "bare": {name: str(each == "SUCCESS") for name, each in answers.items()},
        "wrong": outcome(lambda: check(wrong, (x,)), "test_faketensor failed with"),
        "sneaky": outcome(lambda: check(changing, (x,)), "test_schema failed with", "was mutated"),
    }


@differential
def test_rule_for_vmap(T: Any) -> Any:
    op = _scale(T, f"batched{next(NAMES)}")
    seen: list[Any] = []

    def rule(info: Any, in_dims: Any, x: Any, factor: float = 2.0) -> Any:
        seen.append((info.batch_size, info.randomness, in_dims))
        return op(x, factor), in_dims[0]

    T.library.register_vmap(op, rule)
    return T.vmap(op)(T.arange(6.0).reshape(3, 2)), T.vmap(lambda x: op(x, 3.0), in_dims=1)(T.ones(2, 3)), seen[0]


@differential
def test_libraries_and_overloads(T: Any) -> Any:
    namespace = f"ns{T.__name__}{next(NAMES)}"
    library = T.library.Library(namespace, "DEF")
    library.define("a.over(Tensor x, int n=2) -> Tensor")
    library.define("a(Tensor x) -> Tensor")
    library.impl("a.over", lambda x, n=2: x * n, "CPU")
    library.impl("a", lambda x: x + 1, "CPU")
    a = getattr(T.ops, namespace).a
    x = T.ones(1)
    return {
        "overloads": sorted(a.overloads()),
        "calls": (a.over(x), a.over(x, 5), a.default(x), a(x, 5)),
        "names": (a.over.name().partition("::")[2], a.default.name().partition("::")[2]),
        "twice": outcome(lambda: library.define("a(Tensor x) -> Tensor"), "Tried to register an operator"),
        "type": outcome(lambda: library.define("b(Tenso x) -> Tensor"), "unknown type specifier"),
        "overload": outcome(lambda: a.nothing, "has no overload name 'nothing'"),
    }


def test_modes_may_have_a_rule_of_their_own() -> None:
    from flambeau.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    op = _scale(flambeau, "watched")
    op.register_torch_dispatch(Mode, lambda mode, func, types, args, kwargs: "seen")
    with Mode():
        assert op(flambeau.ones(2)) == "seen"
    assert op(flambeau.ones(2)).tolist() == [2.0, 2.0]


def test_kernels_can_be_switched_off() -> None:
    op = _scale(flambeau, "switched")
    op.register_kernel("cpu", lambda x, factor=2.0: x + 100)
    x = flambeau.zeros(1)
    assert op(x).item() == 100
    with op.set_kernel_enabled("cpu", enabled=False):
        assert op(x).item() == 0
    assert flambeau.library.get_kernel(op, "CPU")(x).item() == 100


def test_what_cannot_be_done_says_so() -> None:
    library = flambeau.library.Library("fallbacks", "DEF")
    with pytest.raises(NotImplementedError, match="TorchDispatchMode"):
        library.fallback(lambda *args: None, "CPU")
    with pytest.raises(NotImplementedError, match="new_dynamic_size"):
        flambeau.library.get_ctx().new_dynamic_size()
    with pytest.raises(RuntimeError, match="IMPL"):
        flambeau.library.Library("aten", "IMPL").define("f(Tensor x) -> Tensor")
