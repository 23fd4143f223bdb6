"""Training steps in any order of their statements, generated from a seed: plain and compiled they do the same.

`python -m tests.compiler.orders 0 500` runs the programs of these seeds and prints those that differ.
"""

from __future__ import annotations

import linecache
import random
import sys
from collections.abc import Callable
from typing import Any

import flambeau as torch
from flambeau import nn

CALLS = 9


class Net(nn.Module):
    """A network with buffers, random numbers and a head that is not always used."""

    def __init__(self, norm: bool, dropout: float) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6) if norm else nn.LayerNorm(6)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(6, 3)
        self.other = nn.Linear(6, 3)

    def forward(self, x: Any, other: bool) -> Any:
        hidden = self.dropout(torch.tanh(self.norm(self.first(x))))
        return self.other(hidden) if other else self.head(hidden)


OPTIMIZERS = (
    ("SGD", "lr=0.1"),
    ("SGD", "lr=0.1, momentum=0.9"),
    ("Adam", "lr=0.01"),
    ("AdamW", "lr=0.01"),
    ("RMSprop", "lr=0.01"),
    ("NAdam", "lr=0.01"),
)


class Program:
    """The statements of a step, chosen by a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._random = random.Random(seed)
        pick = self._random.choice
        self.norm, self.dropout = pick((True, False)), pick((0.0, 0.5))
        kinds = [pick(OPTIMIZERS) for _ in range(pick((1, 1, 2)))]
        self.optimizers = [f"torch.optim.{name}({{}}, {options})" for name, options in kinds]
        self.scheduler = pick((False, False, True))
        self.alternates = pick((False, False, True))
        """Whether the head that is used depends on the number of the call."""
        self.lines = self._statements()

    def _zero(self) -> list[str]:
        pick = self._random.choice
        how = pick(("optimizer", "optimizer", "model", "by hand"))
        if how == "optimizer":
            given = pick(("", "set_to_none=True", "set_to_none=False", "False"))
            return [f"opts[{number}].zero_grad({given})" for number in range(len(self.optimizers))]
        if how == "model":
            return [f"net.zero_grad({pick(('', 'set_to_none=False'))})"]
        return ["for each in net.parameters():", "    each.grad = None"]

    def _statements(self) -> list[str]:
        pick = self._random.choice
        forward = ["y = net(x, other)", f"loss = {pick(('(y - t).pow(2).mean()', 'F.mse_loss(y, t)', 'y.sum()'))}"]
        backward = ["loss.backward()"]
        if pick((False, False, False, True)):
            backward = ["loss.backward(retain_graph=True)", "loss.backward()"]
        between: list[list[str]] = []
        if pick((False, True)):
            clip = pick(("clip_grad_norm_(net.parameters(), 0.5)", "clip_grad_value_(net.parameters(), 0.1)"))
            between.append([f"nn.utils.{clip}"])
        if pick((False, False, True)):
            scale = ["with torch.no_grad():", "    for each in net.parameters():", "        if each.grad is not None:"]
            between.append([*scale, f"            {pick(('each.grad.mul_(0.5)', 'each.sub_(0.01 * each.grad)'))}"])
        steps = [f"opts[{number}].step()" for number in range(len(self.optimizers))]
        if self.scheduler:
            steps.append("scheduler.step()")
        if pick((False, False, True)):
            steps = ["if number % 2:", *[f"    {each}" for each in steps]]
        zero = self._zero()
        where = pick(("start", "end", "after forward", "start and end", "before step", "never"))
        lines = [*forward, *(zero if where == "after forward" else ()), *backward]
        lines += [line for each in between for line in each]
        lines += [*(zero if where == "before step" else ()), *steps]
        if where in ("start", "start and end"):
            lines = [*zero, *lines]
        if where in ("end", "start and end"):
            lines += zero
        results = ("loss", "loss.item()", "loss.detach()", "None", "(loss.detach(), y.detach())", "float(loss)")
        return [*lines, f"return {pick(results)}"]

    @property
    def source(self) -> str:
        return "def step(x, t, other, number):\n" + "".join([f"    {line}\n" for line in self.lines])

    def run(self, change: Callable[[Any], Any]) -> list[Any]:
        """What can be observed after each call of the step, which is `change`d first."""
        torch.manual_seed(self.seed)
        net = Net(self.norm, self.dropout)
        halves = [list(net.parameters())] if len(self.optimizers) == 1 else [
            list(net.first.parameters()) + list(net.norm.parameters()),
            list(net.head.parameters()) + list(net.other.parameters()),
        ]  # fmt: skip
        names: dict[str, Any] = {"torch": torch, "nn": nn, "F": nn.functional, "net": net}
        opts = [
            eval(text.format("params"), {"torch": torch, "params": params})
            for text, params in zip(self.optimizers, halves, strict=True)
        ]
        names["opts"] = opts
        names["scheduler"] = torch.optim.lr_scheduler.StepLR(opts[0], 3, 0.5)
        file = f"orders_{self.seed}_{id(change)}.py"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        exec(compile(self.source, file, "exec"), names)
        step = change(names["step"])
        seen: list[Any] = []
        for number in range(CALLS):
            x, t = torch.randn(5, 4), torch.randn(5, 3)
            result = step(x, t, self.alternates and number % 3 == 1, number)
            seen.append(_observed((result, net, opts)))
        return seen


def _observed(value: tuple[Any, Any, list[Any]]) -> list[Any]:
    """Bits of everything that a step may have changed."""
    result, net, opts = value
    tensors = [*net.parameters(), *net.buffers()]
    states = [[(key, _bits(each)) for key, each in state.items()] for opt in opts for state in opt.state.values()]
    rates = [group["lr"] for opt in opts for group in opt.param_groups]
    grads = [_bits(each.grad) for each in net.parameters()]
    drawn = torch.get_rng_state().numpy().tobytes()
    return [_bits(result), [_bits(each) for each in tensors], grads, states, rates, drawn]


def _bits(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(value.shape), value.detach().numpy().tobytes()
    return tuple([_bits(each) for each in value]) if isinstance(value, tuple) else repr(value)


PARTS = ("the result", "parameters or buffers", "gradients", "states of optimizers", "learning rates", "random numbers")


def difference(seed: int) -> str | None:
    """What differs between the plain and the compiled program of a seed, and the program; None: nothing."""
    program = Program(seed)
    plain = program.run(lambda step: step)
    try:
        compiled = program.run(torch.compile)
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}\n{program.source}"
    for number, (one, other) in enumerate(zip(plain, compiled, strict=True)):
        for name, mine, its in zip(PARTS, one, other, strict=True):
            if mine != its:
                return f"seed {seed}, call {number}: {name}\n{program.source}"
    return None


if __name__ == "__main__":
    for each in range(int(sys.argv[1]), int(sys.argv[2])):
        found = difference(each)
        if found is not None:
            print(found, flush=True)
