"""Random programs must mean the same under Flambeau as under PyTorch; those that once did not are named below."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.program import Program, shrink
from tests.fuzz.statement_writer import write_program
from tests.fuzz.statements import difference, judge
from tests.fuzz.suite import examine
from tests.support.differential import differential, outcome
from tests.support.oracle import needs_pytorch

pytestmark = needs_pytorch

_SEEDS = range(300)
_BATCH = 20


@pytest.mark.parametrize("first", range(_SEEDS.start, _SEEDS.stop, _BATCH))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + _BATCH):
        found = examine("statements", seed)
        assert found.failure is None, f"seed {seed}: {found.failure}\n{found.script}"


def test_same_seed_same_program() -> None:
    assert write_program(7) == write_program(7) != write_program(8)


def test_a_difference_is_found_and_shrunk() -> None:
    program: Program = (
        "v0 = T.tensor([1.0, 2.0], dtype=T.float64)",
        "v1 = v0 * 2",
        "v2 = v0 + (1 if T.__name__ == 'torch' else 2)",
        "v3 = v2.sum()",
    )
    found = judge(program)
    assert found is not None
    assert found.about == "value"
    assert 'after "v2 = v0 + (1' in found.detail
    assert shrink(program, judge, found.kind) == (program[0], program[2])


_ONCE_DIFFERENT: dict[str, Program] = {
    "inputs of backward retain their gradient": (
        "v0 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()",
        "v1 = v0 * 1.5",
        "T.autograd.backward([v1.pow(2).sum()], inputs=[v1])",
    ),
    "result saved by an in-place op, then changed": (
        "v0 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()",
        "v1 = v0 * 1.5",
        "v1.reciprocal_()",
        "v1.abs_()",
        "T.autograd.backward([v1.sum()])",
    ),
    "a number in a product is freed with the graph": (
        "v0 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()",
        "v1 = v0 * 1.5",
        "v1.sum().backward()",
        "v1.sum().backward()",
    ),
    "change of a view is freed with the graph": (
        "v0 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()",
        "v1 = v0.floor()",
        "v1[:1].zero_()",
        "g0, = T.autograd.grad(v1.sum(), [v0])",
        "g1, = T.autograd.grad(v1.sum(), [v0])",
    ),
    "no gradient leads back from a view made under no_grad": (
        "v0 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()",
        "v1 = v0 * 1.5",
        "with T.no_grad(): v2 = v1.view(-1)",
        "v3 = v2.atan2(v1)",
        "g0, = T.autograd.grad(v3.sum(), [v2], allow_unused=True, retain_graph=True)",
        "v3.sum().backward()",
    ),
    "a leaf that is a view of another tensor refuses changes": (
        "v0 = T.tensor([[1.0, 2.0]], dtype=T.float64).t().requires_grad_()",
        "v1 = T.tensor([3.0], dtype=T.float64).requires_grad_()",
        "v0[::2, -1] = v1",
    ),
    "retain_grad follows the base of a changed view": (
        "v0 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()",
        "v1 = v0 * 1.5",
        "v1.retain_grad()",
        "v1[:1].mul_(3)",
        "v1.pow(2).sum().backward()",
    ),
    "retain_grad on a view whose base changes": (
        "v0 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()",
        "v1 = v0 * 1.5",
        "v2 = v1[:1]",
        "v2.retain_grad()",
        "v1.mul_(3)",
        "v2.pow(2).sum().backward()",
    ),
    "view of a leaf that changed under no_grad": (
        "v0 = T.tensor([1.0, 2.0, 3.0], dtype=T.float64).requires_grad_()",
        "v1 = v0[1:]",
        "with T.no_grad(): v0.mul_(2)",
        "v1.pow(2).sum().backward()",
    ),
    "view of a leaf that shares a version with a changed tensor": (
        "v0 = T.tensor([[1.0, 2.0]], dtype=T.float64).requires_grad_()",
        "v1 = v0 * 1.5",
        "v2 = v1.detach().requires_grad_()",
        "v3 = v2.flatten()",
        "v1.exp_()",
        "v3.pow(2).sum().backward()",
    ),
    "a failed assignment writes nothing": (
        "v0 = T.tensor([1.0, 2.0, 3.0], dtype=T.float64).requires_grad_()",
        "v1 = v0 * 1.5",
        "v2 = v1 + v1",
        "v3, *_ = v1.unbind(0)",
        "v1[1:].pow_(2)",
        "v2[...] = v3",
        "v2[:1].copy_(v3)",
        "v2.fill_(v3)",
    ),
    "a view made under no_grad may change under no_grad again": (
        "v0 = T.tensor([-1.86, -1.53, 0.1], dtype=T.float64).requires_grad_()",
        "with T.no_grad(): v1 = v0[...]",
        "with T.no_grad(): v1[None] = v1.sum()",
        "with T.no_grad(): v1.round_()",
    ),
    "new shape of a recorded view under no_grad": (
        "v0 = T.tensor([[1.0, 2.0]], dtype=T.float64).requires_grad_()",
        "v1 = v0.mT",
        "with T.no_grad(): v1.unsqueeze_(0)",
        "v1.pow(2).sum().backward()",
    ),
    "requires_grad_(False) on a view made under no_grad": (
        "v0 = T.tensor([[1.0, 2.0]], dtype=T.float64).requires_grad_()",
        "v1 = v0 * 1.5",
        "with T.no_grad(): v2 = v1[0]",
        "with T.no_grad(): v1.mul_(2)",
        "v2.requires_grad_(False)",
    ),
    "integer results saved for a derivative require no gradient": (
        "v0 = T.tensor([2.0, 1.0], dtype=T.float64).requires_grad_()",
        "v1 = v0.sort(-1)[0]",
        "g0, = T.autograd.grad(v1.sum(), [v0], create_graph=True)",
    ),
    "copy_ of a number is exact": (
        "v0 = T.tensor(1.0, dtype=T.float64)",
        "v0.copy_(0.48)",
    ),
    "copy_ to itself": (
        "v0 = T.tensor([1.0], dtype=T.float64).expand(3)",
        "v0.copy_(v0)",
    ),
    "a mask and a value with a leading dimension of size 1": (
        "v0 = T.tensor([[1.0, 2.0, 3.0]], dtype=T.float64)",
        "v0[T.tensor([[True, False, True]])] = T.tensor([[7.0, 8.0]], dtype=T.float64)",
    ),
    "hooks of a leaf that was frozen": (
        "v0 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()",
        "v0.register_hook(lambda grad: log.append(('v0', grad.detach().clone())))",
        "v1 = v0 * 1.5",
        "v0.requires_grad_(False)",
        "v1.sum().backward()",
    ),
    "gradients that others hold take no more in place": (
        "v0 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()",
        "v1 = v0.add(v0)",
        "g0, = T.autograd.grad(v1.pow(3).sum(), [v1], create_graph=True)",
        "g1, g2, = T.autograd.grad(g0.sum() + v1.sum(), [v0, v1])",
    ),
    "retain_grad, then another shape in place": (
        "v0 = T.tensor([[1.0, 2.0, 3.0]], dtype=T.float64).requires_grad_()",
        "v1 = v0 * 1.5",
        "v1.retain_grad()",
        "v1.t_()",
        "v1.pow(2).sum().backward()",
    ),
    "retain_grad on a view made under no_grad": (
        "v0 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()",
        "v1 = v0 * 1.5",
        "with T.no_grad(): v2 = v1[:1]",
        "v1.copy_(T.tensor(0.5, dtype=T.float64))",
        "v2.retain_grad()",
    ),
    "a leaf that moved into the graph": (
        "v0 = T.tensor([1.0, 2.0], dtype=T.float64).requires_grad_()",
        "v1 = v0 * 1.5",
        "v0.requires_grad_(False)",
        "v0.copy_(v1)",
        "v1.sum().backward()",
    ),
    "gradient of a value with leading dimensions of size 1": (
        "v0 = T.tensor([[1.0, 2.0]], dtype=T.float64).requires_grad_()",
        "v1 = T.zeros(3, dtype=T.float64)",
        "v1[T.tensor([0, 2])] = v0",
        "v1.pow(2).sum().backward()",
    ),
    "gradient of a maximum that is NaN": (
        "v0 = T.tensor([1.0, float('nan')], dtype=T.float64).requires_grad_()",
        "v0.max().pow(2).backward()",
    ),
    "argmax of nothing": ("v0 = T.zeros(0, 2).argmax()",),
}


@pytest.mark.parametrize("every_step", [True, False])
@pytest.mark.parametrize("program", _ONCE_DIFFERENT.values(), ids=_ONCE_DIFFERENT.keys())
def test_once_different(program: Program, every_step: bool) -> None:
    assert difference(program, every_step) is None


@pytest.mark.parametrize(
    "statement",
    [
        "x[T.tensor([0, 0])] = x",
        "x[T.tensor([0, 0])] = x[0]",
        "x[T.tensor([[True, False], [False, True]])] = x[0, 1]",
        "x.remainder_(x[1])",
        "x.div_(x[None])",
        "x.addcmul_(x[0], x[1])",
        "x.mul_(x)",
    ],
)
@differential
def test_memory_that_is_read_while_it_is_written(T: Any, statement: str) -> Any:
    x = T.tensor([[1.0, 2.0], [3.0, 4.0]])
    return outcome(lambda: exec(statement, {"T": T, "x": x})), x
