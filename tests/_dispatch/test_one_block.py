"""A full op is one block: an op added here by the block of CONTRIBUTING.md has everything that other ops have."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import flambeau
from flambeau._dispatch.arguments.autocast_rules import RULED
from flambeau._dispatch.op import OPS
from flambeau._dispatch.public.registry import FUNCTIONS, METHODS, load_all
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import Shard, distribute_tensor
from flambeau.distributed.testing import run_in_threads
from flambeau.utils._python_dispatch import TorchDispatchMode

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"


def _block() -> str:
    """The block that adds `softsign_scaled`, with the imports that the page shows before it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = [each for each in blocks if "def softsign_scaled" in each]
    return f"{blocks[0]}\n{block}"


@pytest.fixture(scope="module", autouse=True)
def softsign_scaled() -> Iterator[None]:
    """The op, while the tests of this file run."""
    load_all()
    functions = {space: dict(found) for space, found in FUNCTIONS.items()}
    methods, ops, ruled = dict(METHODS), dict(OPS), dict(RULED)
    folder = "flambeau._ops.pointwise"
    scope: dict[str, Any] = {"__name__": f"{folder}.added", "__package__": folder}
    exec(compile(_block(), "added.py", "exec", dont_inherit=True), scope)
    yield
    for space, found in FUNCTIONS.items():
        for added in set(found) - set(functions.get(space, ())):
            del found[added]
            vars(flambeau).pop(added, None)
            vars(flambeau.nn.functional).pop(added, None)
    for added in set(METHODS) - set(methods):
        del METHODS[added]
        delattr(flambeau.Tensor, added)
    for table, before in ((OPS, ops), (RULED, ruled)):
        for added in set(table) - set(before):
            del table[added]


torch: Any = flambeau


def expected(x: Any, scale: float) -> Any:
    return x / (scale + x.abs())


def _numbers(*shape: int, dtype: Any = None) -> Any:
    return torch.randn(shape, dtype=dtype or torch.float32, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("shape", [(3,), (0,), (), (100, 100)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_values(shape: tuple[int, ...], dtype: str) -> None:
    x = _numbers(*shape, dtype=getattr(torch, dtype))
    result = torch.nn.functional.softsign_scaled(x, 2.0)
    assert result.dtype is x.dtype
    torch.testing.assert_close(result, expected(x.float() if dtype == "bfloat16" else x, 2.0).to(x.dtype))
    torch.testing.assert_close(x.softsign_scaled(), torch.softsign_scaled(x, scale=1.0), rtol=0, atol=0)


def test_derivatives() -> None:
    x = _numbers(5, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: torch.softsign_scaled(x, 1.5), x)
    assert torch.autograd.gradgradcheck(lambda x: torch.softsign_scaled(x, 1.5), x)
    result = torch.softsign_scaled(x, 1.5)
    assert result.grad_fn.name() == "SoftsignScaledBackward0"
    tangent = torch.func.jvp(lambda x: torch.softsign_scaled(x, 1.5), (x,), (torch.ones_like(x),))[1]
    torch.testing.assert_close(tangent, 1.5 / (1.5 + x.abs()) ** 2)


def test_integers_become_float32() -> None:
    result = torch.softsign_scaled(torch.tensor([-2, 0, 3]), 2.0)
    assert result.dtype is torch.float32
    torch.testing.assert_close(result, torch.tensor([-0.5, 0.0, 0.6]))


def test_out_and_in_place() -> None:
    x = _numbers(4)
    out = torch.empty(4)
    assert torch.softsign_scaled(x, 2.0, out=out) is out
    torch.testing.assert_close(out, expected(x, 2.0))
    changed = x.clone()
    assert changed.softsign_scaled_(2.0) is changed
    torch.testing.assert_close(changed, out, rtol=0, atol=0)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.tensor([1, 2]).softsign_scaled_()


def test_vmap_runs_without_a_loop() -> None:
    x = _numbers(3, 4, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a loop warns
        result = torch.func.vmap(lambda x: torch.softsign_scaled(x, 2.0), in_dims=1, out_dims=1)(x)
    torch.testing.assert_close(result, expected(x, 2.0))


def test_sharded_tensors_stay_sharded() -> None:
    whole = _numbers(4, 3)

    def work(rank: int) -> Any:
        x = distribute_tensor(whole, init_device_mesh("cpu", (2,)), [Shard(0)])
        result = torch.softsign_scaled(x, 2.0)
        return result.placements, result.full_tensor()

    for placements, result in run_in_threads(work, 2):
        assert placements == (Shard(0),)
        torch.testing.assert_close(result, expected(whole, 2.0))


def test_compiled_in_one_segment() -> None:
    def step(x: Any) -> Any:
        return (torch.softsign_scaled(x * 2.0, 2.0) + 1.0).sin()

    compiled = torch.compile(step)
    x = _numbers(64, 64)
    for _ in range(6):
        assert torch.equal(compiled(x), step(x))
    (line,) = torch.compiler.explain(compiled).table().splitlines()[1:]
    assert "mul -> softsign_scaled -> add -> sin" in line


def test_exported_to_onnx_without_a_converter() -> None:
    pytest.importorskip("onnxruntime")
    x = _numbers(4, 3)
    program = torch.onnx.export(lambda x: torch.softsign_scaled(x, 2.0), (x,))
    assert [each.op_type for each in program.model_proto.graph.node] == ["Abs", "Add", "Div"]
    torch.testing.assert_close(program(x)[0], expected(x, 2.0))


def test_autocast_computes_in_float32() -> None:
    half = _numbers(4).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.softsign_scaled(half, 2.0).dtype is torch.float32
        assert torch.nn.functional.softsign_scaled(half, 2.0).dtype is torch.float32
    assert torch.softsign_scaled(half, 2.0).dtype is torch.bfloat16


def test_operator_has_a_name_and_a_schema() -> None:
    seen: list[Any] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = _numbers(3)
    with Watch():
        torch.softsign_scaled(x, 2.0)
    assert [str(each) for each in seen] == ["flambeau.softsign_scaled.default"]
    operator = torch.ops.flambeau.softsign_scaled
    torch.testing.assert_close(operator(x, 2.0), expected(x, 2.0))


def test_annotations_can_be_looked_up() -> None:
    for function in (torch.softsign_scaled, torch.Tensor.softsign_scaled, torch.nn.functional.softsign_scaled):
        assert get_type_hints(function)["scale"] is float
        assert get_type_hints(function)["return"] is torch.Tensor


def test_without_data_and_exported() -> None:
    assert torch.softsign_scaled(torch.empty(3, 2, device="meta"), 2.0).shape == (3, 2)

    class Layer(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.softsign_scaled(x, 2.0)

    x = _numbers(3)
    program = torch.export.export(Layer(), (x,))
    torch.testing.assert_close(program.module()(x), expected(x, 2.0))
    assert np.isfinite(program.module()(x).numpy()).all()
