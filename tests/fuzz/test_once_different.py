"""Programs that the fuzzers found, each of which failed once: under PyTorch, Flambeau, and Flambeau compiled."""

from __future__ import annotations

import pytest

from .program import judge

_PROGRAMS = {
    "data that a call makes and changes": """\
def function():
    v = torch.tensor([0.5, 1.0, 2.0])
    v.add_(1)
    return v
compiled = compile(function)
for turn in range(7):
    see(compiled())
""",
    "a backward pass beyond the arguments": """\
def function(x):
    x.mul(2).sum().backward()
compiled = compile(function)
for turn in range(7):
    leaf = torch.ones(3, requires_grad=True)
    compiled(leaf * 1)
    see(leaf.grad)
""",
    "gradients that can be differentiated again": """\
def function(x):
    x.pow(3).sum().backward(create_graph=True)
compiled = compile(function)
for turn in range(7):
    leaf = torch.ones(3, requires_grad=True)
    compiled(leaf)
    see(leaf.grad)
""",
    "a hook that a call gives to its argument": """\
seen = []
def function(x):
    x.register_hook(lambda grad: seen.append(1))
    return x * 2
compiled = compile(function)
for turn in range(7):
    result = compiled(torch.ones(3, requires_grad=True))
    see(len(seen))
""",
    "a copy of what was detached, changed and returned": """\
def function(x):
    result = x * 1.5
    copy = x.detach().clone()
    negative = copy.neg()
    copy[-1] = 0.5
    return copy, negative.detach(), result
compiled = compile(function)
for turn in range(9):
    see(compiled(torch.full((3,), 0.5 * (turn % 3), requires_grad=True)))
""",
    "a leaf that a call makes and returns": """\
def function(x):
    leaf = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    return leaf, leaf * x
compiled = compile(function)
for turn in range(7):
    leaf, result = compiled(torch.ones(3))
    result.sum().backward()
    see(leaf, leaf.grad, result)
""",
    "a fill of an expanded tensor": """\
def function(x, mask):
    y = (x * 2).expand(2, 3)
    y.masked_fill_(mask, 0.25)
    return y
compiled = compile(function)
for mask in ([[True, False, False], [False, False, True]], [[True], [False]], [[False, True, False]]):
    for turn in range(5):
        see(compiled(torch.ones(3) + turn, torch.tensor(mask)))
""",
    "a backward pass that fails and that nobody asks for": """\
def function(x):
    y = (x * 2).expand(2, 3)
    y.masked_fill_(torch.tensor(True), 0.25)
    return y * 1
compiled = compile(function)
for turn in range(5):
    see(compiled(torch.ones(3, requires_grad=True)).detach())
""",
}


@pytest.mark.parametrize("text", _PROGRAMS.values(), ids=_PROGRAMS.keys())
def test_once_different(text: str) -> None:
    assert judge(tuple(text.splitlines())) is None
