"""Programs in which functions of the compiler are made to raise: each enters some that the others do not."""

from __future__ import annotations

import contextlib
import contextvars
import linecache
import operator
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from types import ModuleType
from typing import Any

import flambeau as torch
from flambeau import nn


class Step:
    """A whole step: buffers, random numbers, clipping, an optimizer; it returns a number."""

    def __init__(self) -> None:
        self.net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.ReLU(), nn.Linear(6, 2))
        self.opt: Any = torch.optim.Adam(self.net.parameters(), lr=0.01)

    def function(self) -> Callable[..., Any]:
        net, opt = self.net, self.opt

        def step(x: Any) -> Any:
            opt.zero_grad()
            loss = net(x).pow(2).mean()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            opt.step()
            return loss.item()

        return step

    def call(self, run: Any, number: int) -> Any:
        return run(torch.randn(5, 4))


class ZeroedLast(Step):
    """A step that forgets gradients last, and returns its loss."""

    def function(self) -> Callable[..., Any]:
        net, opt = self.net, self.opt

        def step(x: Any) -> Any:
            loss = net(x).pow(2).mean()
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=False)
            return loss

        return step


class Module(Step):
    """A module, with the loss, the backward pass and the step outside."""

    def function(self) -> Callable[..., Any]:
        return self.net

    def call(self, run: Any, number: int) -> Any:
        self.opt.zero_grad()
        loss = run(torch.randn(5, 4)).pow(2).mean()
        loss.backward()
        self.opt.step()
        return loss


class Parts(Step):
    """A function with statements that are not compiled, and a look at elements."""

    def function(self) -> Callable[..., Any]:
        net, seen = self.net, []

        def scaled(x: Any) -> Any:
            return torch.tanh(x) * 2

        def f(x: Any) -> Any:
            y = torch.relu(net(x)) + 1
            seen.append(float(y.detach().sum()))
            z = scaled(y)
            return z * torch.rand(2) if x.sum() > -1000 else z

        return f


class Sizes(Step):
    """A module of which no two calls have the same size."""

    def call(self, run: Any, number: int) -> Any:
        return run(torch.randn(3 + number % 4, 4)).sum().backward()

    def function(self) -> Callable[..., Any]:
        return self.net


class Output(OrderedDict[str, Any]):
    """What a model of a library returns."""

    extra: Any = None


class Window:
    """A layer of a cache, which counts what it has seen."""

    def __init__(self) -> None:
        self.rows: Any = torch.zeros(0, 2)
        self.seen = 0

    def update(self, rows: Any) -> Any:
        self.seen += rows.shape[0]
        whole = torch.cat([self.rows, rows])
        self.rows = whole[-4:]
        return whole


class Windows(Step):
    """A model that returns an object of its own, and changes a cache that is new every five calls."""

    def __init__(self) -> None:
        super().__init__()
        self.net.eval()
        self.window = Window()

    def function(self) -> Callable[..., Any]:
        net = self.net

        def f(x: Any, window: Window) -> Any:
            found = Output(rows=window.update(net(x)), count=window.seen)
            found.extra = [found["rows"].sum(0), {"kept": window.rows.shape}]
            return found

        return f

    def call(self, run: Any, number: int) -> Any:
        if number % 5 == 0:
            self.window = Window()
        with torch.no_grad():
            found = run(torch.randn(1, 4), self.window)
        return torch.cat([found["rows"], found.extra[0][None], torch.full((1, 2), float(found["count"]))])


class Experts(Step):
    """A model that looks at other elements in each call, counts its calls, and is told to do something else."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.seen = 0, [0.0]

    def function(self) -> Callable[..., Any]:
        net, state = self.net, self

        def chosen(x: Any) -> Any:
            result = x * 0
            for number in range(5):
                (rows,) = torch.where((x[:, 0].abs() * 4).long() == number)
                result[rows] = x[rows] * (number + 1)
            return result

        def f(x: Any, scale: float, flag: bool) -> Any:
            y = net(chosen(torch.tanh(x)))
            state.calls += 1
            state.seen.append(scale)
            z = {"y": y.detach() * scale, "z": (y.exp() if flag else y.cos()).t()}
            print(end="")
            return [each * 2 for each in z.values()]

        return f

    def call(self, run: Any, number: int) -> Any:
        found = run(torch.randn(8, 4), float(number // 3), number % 4 > 1)
        self.opt.zero_grad()
        found[1].square().mean().backward()
        self.opt.step()
        return torch.cat([found[0], found[1].t(), torch.tensor([[float(self.calls), float(len(self.seen))]])])


class Heads(Step):
    """Attention with shared keys under autocast and without, and a function that reads what it finds in modules."""

    def function(self) -> Callable[..., Any]:
        net = self.net

        def f(x: Any, cache: Any) -> Any:
            q = net(x).reshape(1, 4, -1, 2)
            k = cache[:, :, None].expand(1, 2, 2, cache.shape[2], 2).reshape(1, 4, -1, 2)
            y = nn.functional.scaled_dot_product_attention(q, k, k)
            cache[:, :, :1] += 1
            return (y.transpose(1, 2).reshape(1, -1) @ torch.ones(y.numel(), 3)).float(), k.max(-1).values

        return f

    def call(self, run: Any, number: int) -> Any:
        self.net.eval()
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=number % 3 > 0):
            found = run(torch.randn(4, 4), torch.randn(1, 2, 6 + 2 * (number > 6), 2))
        return torch.cat([each.float().flatten() for each in found])


class Tiny(Step):
    """A function of a few numbers, called so often that it is found out whether programs are quicker; later calls are
    told not to make new ones."""

    def function(self) -> Callable[..., Any]:
        return lambda x: x * 2 + 1

    def call(self, run: Any, number: int) -> Any:
        stance = ("default", "eager_on_recompile", "force_eager")[number % 3]
        with torch.no_grad():
            for _ in range(140):
                found = run(torch.ones(3) * number)
            with torch.compiler.set_stance(stance):
                return found + run(torch.ones(3 + 4 * (number % 2)))[:3]


class Numbers(Step):
    """A function that is given another number in nearly every call."""

    def function(self) -> Callable[..., Any]:
        return lambda x, scale, shift: (x * scale).tanh() + shift

    def call(self, run: Any, number: int) -> Any:
        found = [run(torch.randn(3), float(each // 2 + 9 * number), number // 8) for each in range(18)]
        return torch.stack(found)


class InModes(Step):
    """A module that is called inside contexts in which calls run eagerly, and outside of them."""

    def function(self) -> Callable[..., Any]:
        return self.net

    def call(self, run: Any, number: int) -> Any:
        self.opt.zero_grad()
        saved = torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
        with saved if number % 3 == 1 else contextlib.nullcontext():
            loss = run(torch.randn(5, 4)).pow(2).mean()
            loss.backward()
        return loss


class Whole(Step):
    """A function with `fullgraph`, whose caller runs the function itself where that has a graph break."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.last = torch.zeros(5, 4), None

    def function(self) -> Callable[..., Any]:
        net, state = self.net, self

        def f(x: Any, breaks: str) -> Any:
            state.x.add_(1)
            y = net(x + state.x) * torch.rand(2)
            state.last = y if breaks else state.last
            if breaks == "prints":
                print(end="")
            if breaks == "branches":
                y = y * 2 if y.detach().sum() > -1000 else y
            return y

        return f

    def call(self, run: Any, number: int) -> Any:
        x, breaks = torch.randn(5, 4), {0: "prints", 2: "branches"}.get(number % 4, "")
        try:
            found = run(x, breaks)
        except torch._dynamo.exc.Unsupported:
            found = self.function()(x, breaks)
        found.square().mean().backward()
        return found


class Several(Step):
    """A function of which a loss needs some results alone, in other layouts now and then."""

    def function(self) -> Callable[..., Any]:
        net = self.net

        def f(x: Any) -> Any:
            y = net(x)
            z = y.exp()
            return y * 2, z.view(2, 5) + 1, (y + z).t()

        return f

    def call(self, run: Any, number: int) -> Any:
        self.opt.zero_grad()
        found = run(torch.randn(5, 4))
        chosen = found[number % 3].square()
        (chosen + found[0].sum() if number % 2 else chosen).sum().backward()
        if number % 3 == 0:
            run(torch.randn(5, 4))[1].backward(torch.randn(5, 2).t())
        self.opt.step()
        return found[0]


class Images(Step):
    """Convolutions, norms and products of arrays that are not small, with what is kept of weights under autocast."""

    def __init__(self) -> None:
        self.net = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 16, 3, stride=2), nn.GELU(), nn.Flatten(), nn.Linear(16 * 9, 260), nn.LayerNorm(260),
            nn.Linear(260, 260), nn.Softmax(1), nn.Dropout(0.1),
        )  # fmt: skip
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9)

    def function(self) -> Callable[..., Any]:
        return self.net

    def call(self, run: Any, number: int) -> Any:
        x = torch.randn(8, 3, 16, 16)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            kept = run(x)
        self.opt.zero_grad()
        loss = run(x).square().mean() + 0 * kept.float().mean()
        loss.backward()
        self.opt.step()
        return loss


class Shapes(Step):
    """Ops on small arrays that NumPy runs: windows, copies, joins, sums."""

    def function(self) -> Callable[..., Any]:
        linear = self.net[0]

        def f(x: Any) -> Any:
            y = linear(x)
            rows = torch.cat([y, y.flip(0)], 1).transpose(0, 1).reshape(6, 10)
            full = torch.zeros(6, 10)
            full[1:3, ::2] = rows[:2, :5].detach()
            full.fill_diagonal_(2).clamp_(max=1.5)
            whole = torch.where(rows > 0, rows, full.T.reshape(6, 10)).masked_fill(full > 1, 0.5)
            parts = torch.stack([each.sum(0) for each in whole.split(3)])
            best, place = whole.max(1)
            square = rows[:, :6] @ full[:, :6].swapaxes(0, 1)
            ones = torch.full_like(square, 3.0).index_fill_(0, torch.tensor([1]), 2.0)
            return parts, best * place, square.t() + ones

        return f

    def call(self, run: Any, number: int) -> Any:
        self.opt.zero_grad()
        found = run(torch.randn(5, 4))
        sum(each.square().sum() for each in found).backward()
        return torch.cat([each.reshape(-1) for each in found])


INCIDENTAL: set[Any] = set()
KINDS = frozenset((1, 2))
VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("VARIABLE", default=2.0)
ELSEWHERE = ModuleType("elsewhere")
ELSEWHERE.__dict__["__getattr__"] = lambda name: {"factor": 3.0}[name]
Pair = namedtuple("Pair", ["one", "other"])


class Holder:
    """An object with attributes that are found in several ways."""

    __slots__ = ("__weakref__", "_value", "names", "pair")

    def __init__(self) -> None:
        self._value, self.names, self.pair = 1.5, {"a", "b"}, Pair(2.0, [1.0])

    value = property(operator.methodcaller("told"))

    def told(self) -> float:
        return self._value


class Reads(Step):
    """A function that reads what lies in context variables, weak references, modules, slots, sets and offsets."""

    def __init__(self) -> None:
        super().__init__()
        self.holder, self.empty = Holder(), set[Any]()

    def function(self) -> Callable[..., Any]:
        net, holder, empty = self.net, self.holder, self.empty

        def f(x: Any, names: Any) -> Any:
            y = net(x) * VARIABLE.get() * ELSEWHERE.factor * holder.told()
            if "a" in holder.names and not empty and x.storage_offset() < 100:
                y = y + holder.pair.one * holder.pair.other[0]
            for name in names:
                y = y * getattr(holder, name)
            if not INCIDENTAL and len(KINDS) == 2 and sum(map(operator.itemgetter(1), [(1, 2)])) == 2:
                y = y + getattr(ELSEWHERE, "factor")  # noqa: B009
            if y.detach().sum() > 1e9:
                y = y * 0
            return Pair(y, [y.detach().sum() * 2, *map(abs, [-1.0])])

        return f

    def call(self, run: Any, number: int) -> Any:
        if number == 6:
            self.holder._value = 2.5
        token = VARIABLE.set(float(number // 5))
        with torch.no_grad():
            found = run(torch.randn(6, 4)[1:], ["_value"])
        VARIABLE.reset(token)
        return torch.cat([found.one.reshape(-1), found.other[0].reshape(1)])


_WRITTEN = """
def outer(net, seen):
    def f(x):
        y = net(x)
        try:
            seen.append(float(y.detach().sum()))
        except (TypeError, ValueError) as error:
            seen.append(error)
        def halved(z):
            return z / 2
        z = (lambda each: each * 2)(torch.relu(y))
        print(end="")
        for each in [1.0, 2.0]:
            z = halved(z) + each
        with torch.no_grad():
            seen.append(z.mean().item())
        if len(seen) > 3:
            del seen[:2]
        return net(torch.cat([z, z], 1)) + z
    return f
"""


class Split(Step):
    """A function without a file, of statements of many kinds, some of which are not compiled."""

    def function(self) -> Callable[..., Any]:
        names: dict[str, Any] = {"torch": torch}
        linecache.cache["<written>"] = len(_WRITTEN), None, _WRITTEN.splitlines(keepends=True), "<written>"
        exec(compile(_WRITTEN, "<written>", "exec"), names)
        made: Callable[..., Any] = names["outer"](self.net, [])
        return made


class Lines(Step):
    """The same of a function with a file: lambdas, inner functions, `try`."""

    def function(self) -> Callable[..., Any]:
        net = self.net
        seen: list[Any] = []

        def f(x: Any) -> Any:
            y = net(x)
            try:
                seen.append(float(y.detach().sum()))
            except (TypeError, ValueError) as error:
                seen.append(repr(error))

            def halved(z: Any) -> Any:
                return z / 2

            def doubled(z: Any, by: Any = lambda each: each * 2) -> Any:
                return by(z)

            z = doubled(torch.relu(y))
            print(end="")
            z = halved(net(torch.cat([z, z], 1)))
            print(end="")
            return z + torch.stack([each * 2 for each in z])

        return f

    def call(self, run: Any, number: int) -> Any:
        self.opt.zero_grad()
        loss = run(torch.randn(5, 4)).square().mean()
        loss.backward()
        self.opt.step()
        return loss


class Lengths(Step):
    """A function of sequences whose sizes come again, and which does something else with the longer ones."""

    def function(self) -> Callable[..., Any]:
        linear = self.net[0]

        def f(x: Any) -> Any:
            y = torch.cat([linear(x), x.sum(1, keepdim=True)], 1)
            if x.shape[0] > 6:
                y = y[: x.shape[0] - 2].contiguous()
            return y * len(x) + torch.arange(7.0)

        return f

    def call(self, run: Any, number: int) -> Any:
        with torch.no_grad():
            found = [run(torch.randn(size + number // 4, 4)).sum(0) for size in (2, 3, 4, 5, 5, 6, 7, 8, 3)]
        return torch.stack(found)


PROGRAMS: dict[str, tuple[type[Step], dict[str, Any]]] = {
    "step": (Step, {}),
    "zeroed last": (ZeroedLast, {}),
    "module": (Module, {}),
    "parts": (Parts, {}),
    "sizes": (Sizes, {"dynamic": True}),
    "windows": (Windows, {"dynamic": True}),
    "experts": (Experts, {}),
    "heads": (Heads, {}),
    "tiny": (Tiny, {}),
    "numbers": (Numbers, {}),
    "in modes": (InModes, {}),
    "whole": (Whole, {"fullgraph": True}),
    "several": (Several, {}),
    "images": (Images, {}),
    "shapes": (Shapes, {}),
    "reads": (Reads, {}),
    "split": (Split, {}),
    "lines": (Lines, {}),
    "lengths": (Lengths, {}),
}
