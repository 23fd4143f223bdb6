"""Writes random statements for `tests.fuzz.statements` and `tests.fuzz.tensors`.

The writer runs each statement while it writes, because only that tells which shapes the next one may use.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from tests.support.oracle import pytorch

from .statements import Program, namespace, perform

_MODULE: Any = flambeau if pytorch is None else pytorch

_SHAPES: Sequence[tuple[int, ...]] = (
    (),
    (1,),
    (2,),
    (3,),
    (4,),
    (2, 3),
    (3, 2),
    (3, 3),
    (1, 3),
    (2, 1),
    (2, 2, 3),
    (2, 1, 2),
    (0, 2),
)

_UNARY = (
    *("neg()", "abs()", "sin()", "cos()", "tanh()", "sigmoid()", "relu()", "square()", "exp()", "sign()", "floor()"),
    *(
        "clamp(-0.5, 0.8)",
        "clamp(min=0.1)",
        "atan()",
        "round()",
        "sqrt()",
        "log1p()",
        "reciprocal()",
        "pow(2)",
        "erf()",
    ),
    *("add(1)", "mul(2)", "sub(0.5)", "div(2)", "add(1, alpha=3)", "rsub(1)", "expm1()", "rsqrt()", "trunc()"),
    *("cumsum(-1)", "tril()", "triu()", "nan_to_num()", "hardtanh()", "leaky_relu(0.1)", "fmod(0.7)", "remainder(0.7)"),
    *("flip(-1)", "roll(1)", "softmax(-1)", "clone()", "contiguous()", "double()"),
)
_UNARY_METHODS_ONLY_AS_FUNCTIONS = {"rsub(1)", "hardtanh()", "leaky_relu(0.1)"}
_BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "atan2", "hypot")
_REDUCTIONS = (
    *("sum()", "mean()", "sum(0)", "sum(-1, keepdim=True)", "mean(-1)", "amax(-1)", "amin(0)", "var()"),
    *("max()", "min()", "norm()", "logsumexp(-1)", "std(-1)", "max(-1)[0]", "min(0).values", "sum((0, -1))"),
    *("cumprod(0)", "median()", "sort(-1)[0]", "topk(1, -1)[0]", "argmax()", "all()", "any()"),
)
_INPLACE_UNARY = (
    *("add_(1)", "mul_(2)", "sub_(0.5)", "div_(2)", "zero_()", "fill_(0.5)", "exp_()", "sigmoid_()", "tanh_()"),
    *(
        "clamp_(-0.5, 0.8)",
        "clamp_(min=0.1)",
        "neg_()",
        "sin_()",
        "cos_()",
        "abs_()",
        "square_()",
        "pow_(2)",
        "sqrt_()",
    ),
    *("relu_()", "floor_()", "reciprocal_()", "cumsum_(-1)", "sign_()", "requires_grad_()", "detach_()", "t_()"),
    *("unsqueeze_(0)", "squeeze_()", "transpose_(0, -1)", "round_()", "requires_grad_(False)", "erf_()"),
    *("masked_fill_(T.tensor(True), 0.25)", "clamp_max_(0.5)", "nan_to_num_()", "log1p_()", "expm1_()", "rsqrt_()"),
)
_INPLACE_BINARY = ("add_", "sub_", "mul_", "div_", "copy_", "atan2_", "hypot_", "clamp_")
_WRAPPERS = (
    "with T.no_grad(): ",
    "with T.enable_grad(): ",
    "with T.set_grad_enabled(False): ",
    "with T.inference_mode(): ",
)


class _Author:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = namespace(_MODULE)
        self.program: list[str] = []
        self.failed: list[int] = []  # the statements that raised an error
        self.count = 0
        self.doubled: list[Any] = []  # tensors with a hook that changes their gradient
        self.hooked: list[Any] = []

    def write(self) -> Program:
        """Leaves, random steps, and derivatives."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number in range(self.random.randint(1, 3)):
                self.perform(self.leaf(requires_grad=number == 0 or self.chance(0.5)))
            if self.chance(0.8):  # most in-place changes need a tensor that is no leaf
                self.perform(f"{self.new()} = v0 * 1.5")
            for _ in range(self.random.randint(5, 25)):
                self.perform(self.step())
            for _ in range(self.random.randint(1, 3)):
                self.perform(self.derivative())
        return tuple(self.program)

    def perform(self, statement: str) -> None:
        if statement[0] == "v" and self.chance(0.06):
            statement = self.pick(_WRAPPERS[:3]) + statement
        self.program.append(statement)
        if perform(statement, self.names) is not None:
            self.failed.append(len(self.program) - 1)

    # Small choices

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def new(self, letter: str = "v") -> str:
        self.count += 1
        return f"{letter}{self.count - 1}"

    def number(self) -> float:
        return round(self.random.uniform(-2, 2), 2) or 0.25  # the sign of zero is not the point

    def tensors(self, suits: Callable[[Any], bool] = lambda tensor: True) -> list[str]:
        return [
            name
            for name, value in self.names.items()
            if name[0] == "v" and isinstance(value, _MODULE.Tensor) and value.dtype is _MODULE.float64 and suits(value)
        ]

    def any(self, suits: Callable[[Any], bool] = lambda tensor: True) -> str:
        """A variable, rather a late one."""
        names = self.tensors(suits) or self.tensors()
        return names[max(self.random.randrange(len(names)), self.random.randrange(len(names)))]

    def tensor(self, name: str) -> Any:
        return self.names[name]

    def values(self, shape: Sequence[int]) -> Any:
        return [self.values(shape[1:]) for _ in range(shape[0])] if shape else self.number()

    def literal(self, shape: Sequence[int]) -> str:
        if 0 in shape:
            return f"T.zeros({tuple(shape)}, dtype=T.float64)"
        return f"T.tensor({self.values(shape)}, dtype=T.float64)"

    def leaf(self, requires_grad: bool) -> str:
        shape = self.pick(_SHAPES)
        text = self.literal(shape)
        if len(shape) == 2 and self.chance(0.2):
            text += ".t()"
        return f"{self.new()} = {text}" + (".requires_grad_()" if requires_grad else "")

    # Statements

    def step(self) -> str:
        writers: list[tuple[int, Callable[[], str]]] = [
            (14, self.unary),
            (12, self.binary),
            (6, self.reduction),
            (22, self.view),
            (6, self.gather),
            (16, self.inplace),
            (10, self.inplace_binary),
            (10, self.setitem),
            (5, self.detached),
            (5, self.hook),
            (6, self.join),
            (2, self.gradient_between),
        ]
        kinds = [write for _, write in writers]
        return self.random.choices(kinds, [weight for weight, _ in writers])[0]()

    def unary(self) -> str:
        name, method = self.any(), self.pick(_UNARY)
        if self.large(name):
            method = "sin()"
        if method in _UNARY_METHODS_ONLY_AS_FUNCTIONS:
            function, arguments = method.split("(", 1)
            place = "T" if function == "rsub" else "T.nn.functional"
            return f"{self.new()} = {place}.{function}({name}{', ' if arguments != ')' else ''}{arguments}"
        return f"{self.new()} = {name}.{method}"

    def large(self, name: str) -> bool:
        values = self.tensor(name).detach()
        return values.numel() > 0 and not bool((values.abs() < 20).all())

    def partner(self, name: str) -> str:
        """A tensor, number or literal that broadcasts with `name`."""
        shape = tuple(self.tensor(name).shape)
        if self.chance(0.15):
            return str(self.number())
        if self.chance(0.25):
            cut = shape[self.random.randint(0, len(shape)) :]
            return self.literal([1 if self.chance(0.3) else size for size in cut])
        return self.any(lambda other: _broadcasts(tuple(other.shape), shape))

    def binary(self) -> str:
        left = self.any()
        gradients = [name for name, value in self.names.items() if name[0] == "g" and value is not None]
        if gradients and self.chance(0.3):
            return f"{self.new()} = {left} + {self.pick(gradients)}.sum()"
        right = self.partner(left)
        method = "add" if self.large(left) else self.pick(_BINARY)
        if self.chance(0.4) and method in ("add", "sub", "mul", "div"):
            sign = {"add": "+", "sub": "-", "mul": "*", "div": "/"}[method]
            return f"{self.new()} = {self.pick((f'{left} {sign} {right}', f'{right} {sign} {left}'))}"
        return f"{self.new()} = {left}.{method}({self.as_tensor(right)})"

    def as_tensor(self, text: str) -> str:
        return text if text[0] in "vT" else f"T.tensor({text}, dtype=T.float64)"

    def reduction(self) -> str:
        return f"{self.new()} = {self.any(lambda tensor: tensor.dim() > 0)}.{self.pick(_REDUCTIONS)}"

    def dim(self, name: str) -> int:
        dims = self.tensor(name).dim()
        return self.random.randint(-dims, dims - 1) if dims else self.pick((0, -1))

    def view(self) -> str:
        name = self.any()
        text = self.view_of(name)
        if text.startswith("*"):
            return f"{self.new()}, *_ = {name}.{text[1:]}"
        return f"{self.new()} = {name}{text}"

    def view_of(self, name: str) -> str:
        """What makes a view of `name`; with a star in front if it makes several."""
        tensor = self.tensor(name)
        shape, dims = tuple(tensor.shape), tensor.dim()
        dim, other = self.dim(name), self.dim(name)
        size = shape[dim] if dims else 1
        start = self.random.randint(0, max(size - 1, 0))
        options = [
            f".unsqueeze({self.random.randint(0, dims)})",
            ".squeeze()",
            ".view(-1)",
            ".reshape(-1)",
            f".expand({(2, *shape)})",
            ".detach()",
            f".view_as({name})",
            "[...]",
            "[None]",
            ".flatten()",
            f".as_strided({self.strided(tensor)})",
        ]
        if dims:
            options += [
                f".select({dim}, {start})",
                f".narrow({dim}, {start}, {self.random.randint(0, max(size - start, 0))})",
                f".transpose({dim}, {other})",
                f".permute({tuple(self.random.sample(range(dims), dims))})",
                f"[{self.slices(shape)}]",
                f"[{self.slices(shape)}]",
                f".unfold({dim}, {min(size, 2)}, 2)",
                f".squeeze({dim})",
                ".mT" if dims > 1 else ".T",
                f".movedim({dim}, {other})",
                f".view({tuple(reversed(shape))})",
                f".reshape({(*shape, 1)})",
                f"*unbind({dim})",
                f"*split(1, {dim})",
                f"*chunk(2, {dim})",
                f"*tensor_split(2, {dim})",
            ]
        if dims > 1:
            options += [".diagonal()", f".diagonal({self.pick((-1, 1))}, 0, -1)", ".t()", f".swapaxes({dim}, {other})"]
        return str(self.pick(options))

    def strided(self, tensor: Any) -> str:
        """Arguments of `as_strided` that stay in the storage."""
        room = tensor.untyped_storage().nbytes() // 8
        start = self.random.randint(0, max(room - 1, 0))
        step = 2  # no element twice: the order of in-place changes would count
        size = max((room - start - 1) // step + 1, 0)
        if self.chance(0.3):
            return f"({self.random.randint(0, min(size, 3))},), ({step},), {start}"
        rows = self.random.randint(1, 2)
        columns = self.random.randint(0, max(min((room - start - rows) // step + 1, 3), 0))
        return f"({rows}, {columns}), (1, {step}), {start}"

    def slices(self, shape: Sequence[int]) -> str:
        parts = []
        for size in shape[: self.random.randint(1, len(shape))]:
            start = self.random.randint(0, max(size - 1, 0))
            parts.append(self.pick((f"{start}:", ":", str(start), f":{start + 1}", "::2", "-1", "None", "...")))
        return ", ".join(parts if parts.count("...") < 2 else [part.replace("...", ":") for part in parts])

    def index(self, shape: Sequence[int]) -> str:
        """An advanced index."""
        if not shape or self.chance(0.25):
            return f"T.tensor({self.booleans(shape)}, dtype=T.bool)"
        places = [self.random.randint(-shape[0], max(shape[0] - 1, 0)) for _ in range(self.random.randint(1, 3))]
        kind = self.pick(("tensor", "tensor", "list", "pair", "slice", "column"))
        if kind == "list":
            return str(places)
        if kind == "column":
            return f"T.tensor({[[place] for place in places]})"
        if len(shape) > 1 and kind == "pair":
            others = [self.random.randint(0, max(shape[1] - 1, 0)) for _ in places]
            return f"T.tensor({places}), T.tensor({others})"
        if len(shape) > 1 and kind == "slice":
            others = [self.random.randint(0, max(shape[1] - 1, 0)) for _ in places]
            return f":, T.tensor({others})"
        return f"T.tensor({places})"

    def booleans(self, shape: Sequence[int]) -> Any:
        return [self.booleans(shape[1:]) for _ in range(shape[0])] if shape else self.chance(0.5)

    def gather(self) -> str:
        name = self.any(lambda tensor: tensor.dim() > 0 and tensor.numel() > 0)
        shape = tuple(self.tensor(name).shape)
        if self.chance(0.6) or 0 in shape:
            return f"{self.new()} = {name}[{self.index(shape)}]"
        dim = self.dim(name)
        places = [self.random.randint(0, max((shape[dim] if shape else 1) - 1, 0)) for _ in range(2)]
        options = (
            f"index_select({dim}, T.tensor({places}))",
            f"index_fill({dim}, T.tensor([{places[0]}]), 0.5)",
        )
        return f"{self.new()} = {name}.{self.pick(options)}"

    def inplace(self) -> str:
        name = self.any()
        method = self.pick(_INPLACE_UNARY)
        if self.large(name):
            method = "sin_()"
        if self.chance(0.12):
            arguments, text = self.pick(("+= 1", "*= 2", "-= 0.5", "/= 2", "**= 2")), ""
            return f"{name} {arguments}{text}"
        if self.chance(0.15):  # a view that no variable holds
            text = self.view_of(name)
            if not text.startswith("*"):
                return f"{name}{text}.{method}"
        return f"{name}.{method}"

    def inplace_binary(self) -> str:
        name = self.any()
        method = self.pick(_INPLACE_BINARY)
        if self.large(name):
            return f"{name}.copy_({self.other_memory(name)})"
        if method == "clamp_":
            left, right = self.as_tensor(self.other_memory(name)), self.as_tensor(self.other_memory(name))
            return f"{name}.addcmul_({left}, {right}, value=0.5)"
        return f"{name}.{method}({self.as_tensor(self.other_memory(name))})"

    def other_memory(self, name: str) -> str:
        """A partner to write to `name`: one that shares memory with it would be read while it is written."""
        text = self.partner(name)
        if text[0] == "v" and text != name:
            memories = [self.tensor(each).untyped_storage().data_ptr() for each in (name, text)]
            return "0.5" if memories[0] == memories[1] else text
        return text

    def setitem(self) -> str:
        name = self.any()
        shape = tuple(self.tensor(name).shape)
        value = self.other_memory(name)
        if value == name:
            value = "0.5"
        if not shape:
            return f"{name}[...] = {value}"
        index = self.slices(shape) if self.chance(0.6) or 0 in self.tensor(name).stride() else self.index(shape)
        value = value if self.chance(0.6) else self.pick(("0.5", "1", f"{name}.sum()"))
        if self.chance(0.2):
            return f"{name}[{index}] {self.pick(('+=', '*='))} {value}"
        return f"{name}[{index}] = {value}"

    def detached(self) -> str:
        name = self.any()
        if self.chance(0.2):
            return f"{self.new()} = T.{self.pick(('zeros_like', 'empty_like', 'ones_like'))}({name}).zero_()"
        options = ("detach()", "data", "clone()", "detach().clone()", "requires_grad_()", "detach().requires_grad_()")
        return f"{self.new()} = {name}.{self.pick(options)}"

    def hook(self) -> str:
        # PyTorch gives a tensor's later hooks to the node that had its first one, whatever made it since.
        name = self.any(lambda tensor: tensor.requires_grad and not any(tensor is each for each in self.hooked))
        self.hooked.append(self.tensor(name))
        if self.chance(0.2):
            self.doubled.append(self.tensor(name))
            return f"{name}.grad_fn, {name}.register_hook(lambda grad: grad * 2)"
        noted = f"log.append(({name!r}, "
        options = (
            f"{name}.retain_grad()",
            f"{name}.grad_fn, {name}.retain_grad()",
            # PyTorch crashes where a hook comes to a view whose base has changed since somebody asked for its history.
            f"{name}.grad_fn, {name}.register_hook(lambda grad: {noted}grad.detach().clone())))",
            f"{name}.register_post_accumulate_grad_hook(lambda leaf: {noted}leaf.grad.clone())))",
            f"{name}.grad = None",
        )
        return str(self.pick(options))

    def join(self) -> str:
        name = self.any()
        shape = tuple(self.tensor(name).shape)
        alike = self.any(lambda other: tuple(other.shape) == shape)
        near = self.as_tensor(self.partner(name))
        options = [
            f"T.stack([{name}, {alike}], {self.random.randint(0, len(shape))})",
            f"T.cat([{name}, {alike}, {name}], {self.dim(name)})",
            f"T.where({name} > 0, {name}, {near})",
            f"T.where({name} > 0, {near}, 0.5)",
            f"{name} @ {alike}.mT" if len(shape) > 1 else f"{name} @ {alike}",
            f"{name}.matmul({self.any(lambda other: other.dim() > 0)}) * 1",  # PyTorch may count a change of a product
            f"T.outer({name}, {alike})" if len(shape) == 1 else f"T.addcmul({name}, {near}, {near})",
            f"T.einsum('...i,...i->...', {name}, {alike}) * 1",  # it may end with another kind of view
            f"{name}.contiguous().masked_scatter({name} > 0, {alike})",
            f"{name}.index_put((T.tensor([0]),), {self.number()} + {name}[:1].detach())",
        ]
        return f"{self.new()} = {self.pick(options)}"

    # Derivatives

    def options(self) -> str:
        if self.tensors(lambda tensor: tensor.numel() == 0):  # PyTorch's gradients of nothing may be without history
            return ""
        return str(self.pick(("", "", ", retain_graph=True", ", create_graph=True")))

    def gradient_between(self) -> str:
        return self.derivative()

    def derivative(self) -> str:
        name = self.any(lambda tensor: tensor.requires_grad)
        if self.chance(0.45):
            outputs = ", ".join(self.any(lambda tensor: tensor.requires_grad) for _ in range(self.random.randint(1, 2)))
            ones = f", T.ones_like({name})" if outputs == name else ""
            sums = ones or "".join(f"({each}).pow(2).sum(), " for each in outputs.split(", "))
            call = f"[{name}]{ones}" if ones else f"[{sums}]"
            leaves = self.tensors(lambda tensor: tensor.requires_grad and not tensor._is_view() and tensor.is_leaf)
            # Of a single output that leads to none of the inputs PyTorch still runs the hooks.
            inputs = f", inputs=[{self.pick(leaves)}]" if leaves and not ones and self.chance(0.2) else ""
            return f"T.autograd.backward({call}{self.options()}{inputs})"
        gradients = [each for each, value in self.names.items() if each[0] == "g" and value is not None]
        source = f"({self.pick(gradients)}.sum() + {name}.sum())" if gradients and self.chance(0.7) else name
        wanted = [self.any(lambda tensor: tensor.requires_grad) for _ in range(self.random.randint(1, 3))]
        if any(self.tensor(each) is tensor for each in wanted for tensor in self.doubled):
            wanted = wanted[
                :1
            ]  # whether PyTorch runs a tensor's hooks before it returns its gradient depends on the others
        targets = ", ".join(self.new("g") for _ in wanted)
        unused = ", allow_unused=True" if self.chance(0.8) else ""
        power = self.pick(("", ".pow(3)", ".sin()"))
        return f"{targets}, = T.autograd.grad({source}{power}.sum(), [{', '.join(wanted)}]{self.options()}{unused})"


def _broadcasts(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(other), strict=False)
    return len(shape) <= len(other) and all(left in (1, right) for left, right in pairs)


def write_program(seed: int) -> Program:
    """The program of this seed, always the same."""
    return _Author(seed).write()


def write_valid_statements(seed: int) -> Program:
    """Those statements of a program that raise no error."""
    author = _Author(seed)
    author.write()
    return tuple(each for number, each in enumerate(author.program) if number not in author.failed)
