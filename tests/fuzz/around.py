"""Writes random Python around compiled functions: branches, containers, closures, contexts, and state that changes."""

from __future__ import annotations

from .program import Program
from .writer import Writer

_PRELUDE = """\
import contextlib
import dataclasses
import functools
import math
@dataclasses.dataclass
class Options:
    scale: float = 2.0
    flag: bool = True
    names: list = dataclasses.field(default_factory=lambda: ["a", "b"])
    bias: object = None
class Counter:
    limit = 3
    def __init__(self):
        self.count = 0
        self.history = []
    def __call__(self, x):
        self.count += 1
        return x + self.count
    @property
    def half(self):
        return self.limit / 2
@contextlib.contextmanager
def scaled(factor):
    before = options.scale
    options.scale = factor
    try:
        yield factor
    finally:
        options.scale = before
def closure(number):
    def inner(x):
        return x * number
    return inner
class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("total", torch.zeros(3))
        self.factor = 1.5
    def forward(self, x):
        if self.training:
            self.total += 1
        return self.linear(x) * self.factor
options = Options()
counter = Counter()
table = {"a": 1.0, "b": torch.ones(3), "c": [1, 2]}
items = [1.0, 2.0, torch.ones(3)]
inner = closure(2.0)
LEVEL = 2
torch.manual_seed(1)
small = Small()
weight = torch.randn(3, requires_grad=True)"""

_EXPRESSIONS = (
    *("x * options.scale", "x + LEVEL", "inner(x)", "x * items[0]", "x + table['a']", "x + table['b']", "small(x)"),
    *("x * len(items)", "x + counter.half", "counter(x)", "x * weight", "x + weight.sum()", "x * x.shape[0]"),
    *("x.reshape(-1, 3).sum(0) + x", "x * float(len(options.names))", "x + sum(each for each in table['c'])"),
    *("x + (options.bias if options.bias is not None else 0)", "functools.reduce(torch.add, [x, x, x])", "x * math.pi"),
    *("torch.cat([each for each in (x, x)])[: len(x)]", "x * getattr(options, 'scale')", "x @ torch.eye(3)"),
    *("x * sum(1 for each in items if isinstance(each, float))", "x - x.detach()", "x * dict(a=2, **{'b': 3})['b']"),
    *("(lambda y: y * 2 + LEVEL)(x)", "x * int(options.flag)", "x + table.get('z', 0.5)", "torch.relu(x)", "x.sin()"),
    *("x * [each * 2 for each in (1, 2, 3)][-1]", "x + max(len(each) for each in options.names)", "F.softmax(x, -1)"),
    *("x * (2 if x.dim() == 2 else 3)", "x.to(torch.float64).to(x.dtype)", "x.clone().add_(1)", "x + torch.rand(3)"),
    *(
        "x * (1.0 if x.requires_grad else 2.0)",
        "x + next(iter(small.parameters())).sum()",
        "x * torch.is_grad_enabled()",
    ),
    *("torch.where(x > 0, x, -x)", "x.masked_fill(x > 1, 0.0)", "x + (a := 2) * a", "x * f'{LEVEL}'.__len__()"),
    *(
        "x + sorted(table['c'])[0]",
        "x * dataclasses.replace(options, scale=3.0).scale",
        "x[..., [0, 2, 1]]",
        "x.flip(0)",
    ),
    *(
        "small.linear(x) if small.training else x",
        "x + small.total",
        "x * {1, 2, 3}.__len__()",
        "-x if options.flag else x",
    ),
    *("x + extra", "x * (extra if isinstance(extra, (int, float)) else 1)", "torch.stack([x, x * 2]).mean(0)"),
)
_STATEMENTS = (
    *("x.add_(1)", "counter.count += 1", "see_inside.append(len(see_inside))", "items[0] = items[0] + 0", "LOCAL = 3"),
    *("counter.history.append(1)", "options.scale = options.scale", "del y; y = x", "table['d'] = 1", "x = x * 1"),
    *("y = y.detach()", "table.pop('d', None)", "y[0] = 1", "y = y.contiguous()", "assert x is not None", "y *= 2"),
    *("first, *rest = x.unbind(0); y = y + first", "y = y + sum(x.chunk(2, -1)[0].sum() for _ in range(2))"),
    *(
        "for _ in zip(items, table): y = y + 1",
        "y = [y, x][0]",
        "(y,) = (y,)",
        "y = y.item() + x if y.numel() == 1 else y",
    ),
    *(
        "see(y.sum())",
        "y = y + float(x.detach().max())",
        "global LEVEL2; LEVEL2 = y.shape[0]",
        "y.requires_grad_(False) if y.is_leaf else None",
    ),
)
_CONDITIONS = (
    *("options.flag", "x.shape[0] > 2", "LEVEL > 1", "x.dtype == torch.float32", "x.requires_grad", "len(items) > 2"),
    *("counter.count % 2 == 0", "small.training", "'d' in table", "x.sum() > 0", "x.detach().mean().item() > 0.1"),
    *("torch.is_grad_enabled()", "isinstance(extra, int)", "extra", "x.is_contiguous()", "options.bias is None"),
    *("not counter.history", "x.max() > 1 and options.flag", "any(isinstance(each, str) for each in table)"),
)
_CHANGES = (
    *("options.scale = 3.0", "options.flag = not options.flag", "LEVEL = LEVEL + 1", "items.append(4.0)"),
    *("table['a'] = table['a'] + 1", "table['e'] = 0", "inner = closure(3.0)", "inner = closure(2.0)"),
    *("counter.limit = 5", "items.pop()"),
    *("Counter.limit = 4", "small.eval()", "small.train()", "small.factor = 2.5", "options.names.append('cc')"),
    *("options.bias = 0.5", "options.bias = torch.ones(3)", "options.bias = None", "options = Options(scale=1.0)"),
    *("with torch.no_grad(): weight.mul_(1.5)", "weight = weight.detach().requires_grad_()", "small = Small()"),
    *("weight.requires_grad_(False)", "small.linear.weight.requires_grad_(False)", "items[2] = torch.zeros(3)"),
    *("items[2].add_(1)", "table['b'] = table['b'] * 2", "counter = Counter()", "extra = 2", "extra = 2.0"),
    *("extra = True", "extra = -0.0", "extra = float('nan')", "Small.forward = lambda self, x: x * 3"),
    *("small.register_forward_hook(lambda module, given, result: result * 2)", "torch.set_grad_enabled(False)"),
    *("torch.set_grad_enabled(True)",),
    *("small.linear = nn.Linear(3, 3)", "small.extra = 1", "del table['c'][0]", "small.double(); small.float()"),
    *("math.pi2 = 1", "options.__dict__['scale'] = 7.0", "small.total = torch.ones(3)", "table['c'].append(3)"),
)  # fmt: skip
_WITH = (
    *("with scaled(3.0):", "with torch.no_grad():", "with torch.enable_grad():", "with contextlib.nullcontext():"),
    *("with torch.autocast('cpu', dtype=torch.bfloat16):", "with contextlib.suppress(ValueError):", "try:"),
    *("with torch.set_grad_enabled(x.requires_grad):", "with torch.random.fork_rng():"),
)
_LOOPS = (
    *(
        "for each in range(2):",
        "for each in items[:2]:",
        "for key, each in table.items():",
        "for each in options.names:",
    ),
    *(
        "for each in x.unbind(0)[:2]:",
        "for each in range(x.shape[0]):",
        "while y.dim() > 2:",
        "for i, each in enumerate((1, 2)):",
    ),
)
_RETURNED = ("y", "y", "x, y", "[y, y.sum()]", "dict(y=y, n=LEVEL)", "y.sum().item()", "Options(bias=y)")


class _Around(Writer):
    def write(self) -> Program:
        self.line(_PRELUDE)
        self.line("extra = 1\nsee_inside = []")
        helper = self.chance(0.3)
        if helper:
            self.line("def helper(x, extra=1):")
            self.block(1, 1)
            self.line("return y", 1)
        parameters = self.pick(("x, extra", "x, extra=1", "x, *rest, extra=1", "x, extra=1, **rest"))
        self.line(f"def function({parameters}):")
        self.block(1, self.random.randint(2, 5), helper)
        self.line(f"return {self.pick(_RETURNED)}", 1)
        options = self.pick(("",) * 5 + (", dynamic=True", ", dynamic=False"))
        self.line(f"compiled = compile(function{options})")
        self.loop()
        return self.program()

    def expression(self, helper: bool = False) -> str:
        text = self.pick(_EXPRESSIONS)
        return f"helper({text}, extra)" if helper and self.chance(0.4) else text

    def block(self, depth: int, count: int, helper: bool = False) -> None:
        if depth == 1:
            self.line(f"y = {self.expression(helper)}", depth)
        for _ in range(count):
            if self.chance(0.35) and depth < 3:
                self.compound(depth, helper)
            elif self.chance(0.3):
                self.line(self.pick(_STATEMENTS), depth)
            else:
                target = self.pick(("y", "y", "x"))
                self.line(f"{target} = {self.expression(helper)}", depth)
                if self.chance(0.5):
                    self.line(f"y = y {self.pick('+-*')} x", depth)

    def compound(self, depth: int, helper: bool) -> None:
        kind = self.pick(("if", "if", "if", "with", "loop"))
        header = f"if {self.pick(_CONDITIONS)}:" if kind == "if" else self.pick(_WITH if kind == "with" else _LOOPS)
        self.line(header, depth)
        self.block(depth + 1, self.random.randint(1, 2), helper)
        if kind == "if" and self.chance(0.2):
            self.line(self.pick(("return y", "raise ValueError('no')")), depth + 1)
        if kind == "loop" and self.chance(0.3):
            self.line(self.pick(("break", "continue")), depth + 1)
        if kind == "loop" and header.startswith("while"):
            self.line("y = y.sum(0)", depth + 1)
        if kind == "if" and self.chance(0.4):
            self.line("else:", depth)
            self.block(depth + 1, 1, helper)
        if header == "try:":
            self.line(self.pick(("finally:", "except ValueError:")), depth)
            self.line("y = y + 1", depth + 1)

    def loop(self) -> None:
        self.line(f"for turn in range({self.pick((7, 10, 13))}):")
        for _ in range(self.random.randint(0, 3)):
            turn = f"turn == {self.random.randint(1, 9)}" if self.chance(0.7) else f"turn % {self.pick((2, 3))} == 1"
            self.line(f"if {turn}:", 1)
            self.line(self.pick(_CHANGES), 2)
        rows = self.pick(("2", "2", "2", "4", "2 + turn % 2", "1 + turn % 4", "2 + (turn == 6)"))
        dtype = self.pick(("",) * 4 + (", dtype=torch.float64 if turn == 7 else torch.float32",))
        self.line(f"x = torch.randn({rows}, 3{dtype})", 1)
        if self.chance(0.4):
            self.line(self.pick(("x.requires_grad_()", "x.requires_grad_(turn != 6)", "x = x.t().contiguous().t()")), 1)
        self.line("try:", 1)
        self.line(f"result = compiled(x, {self.pick(('extra=extra', 'extra=1', 'extra=turn', 'extra=turn % 2'))})", 2)
        self.line("except (ValueError, RuntimeError, TypeError) as error:", 1)
        self.line("result = type(error).__name__", 2)
        self.line("see(result, x)", 1)
        if self.chance(0.5):
            self.line("if isinstance(result, torch.Tensor) and result.requires_grad:", 1)
            self.line("result.sum().backward()", 2)
            self.line("see(x.grad, weight.grad, small.linear.weight.grad)", 2)
        self.line(
            "see(counter.count, len(counter.history), len(see_inside), sorted(table), small.total, torch.rand(1))"
        )
        self.line("see(options, items, weight)")


def write(seed: int) -> Program:
    """The program of this seed, always the same."""
    return _Around(seed).write()
