"""Functions and modules as they are written for TorchScript: what `test_scripting.py` saves, loads and runs."""

# ruff: noqa: UP006, UP032, UP035, UP045  (the older forms, which such programs have)

from __future__ import annotations

import enum
import math
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import Tensor, nn


def branches(x: Tensor, low: float = 0.0) -> Tensor:
    if x.sum() > low:
        return x * 2
    elif x.size(0) == 3 and not x.requires_grad:
        x = -x
    else:
        return x - 1
    return x.abs() if low < 0 < x.numel() else ~(x > 0)


def loops(x: Tensor, n: int) -> Tuple[Tensor, int]:
    for i in range(n):
        if i == 2:
            continue
        if i > 4:
            break
        x = x + i * x.size(0) // 2
    count = 0
    while bool(x.norm() > 1.0):
        x /= 2
        count += 1
    return x, count


def lists(xs: List[Tensor]) -> Tensor:
    out: List[Tensor] = []
    for i, x in enumerate(xs):
        out.append(x.view(-1, 2)[:, 0] * float(i + 1))
    sizes = [x.numel() for x in xs]
    total = 0
    for first, second in zip(sizes, sizes[1:]):  # noqa: B905, RUF007  (TorchScript's zip)
        total += first * second
    return torch.stack(out, dim=0) + total + max(sizes) % 3


def optional(x: Tensor, bias: Optional[Tensor] = None, names: Optional[List[str]] = None) -> Tensor:
    if bias is not None:
        x = x + bias
    if names is None:
        names = ["a", "b"]
    return F.relu(x) ** len(names)


def dicts(x: Tensor) -> Dict[str, Tensor]:
    found: Dict[str, Tensor] = {}
    found["a"] = x
    found["b"] = x.t()
    if "a" in found and x.dim() == 2 and "c" not in found:
        found["c"] = found["a"].sum(1, keepdim=True)
    return found


def _power(x: Tensor, k: int) -> Tensor:
    return x**k + math.pi


def calls(x: Tensor) -> Tensor:
    return _power(x, 2) + _power(x.abs(), k=3) @ torch.ones(3, 3) + math.sqrt(x.size(0))


def subscripts(x: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    y[0] = x[0]
    y[1:, 0] += x[1:, 1]
    y[..., -1] = 5.0
    rows, columns = x.shape[0], x.shape[1]
    z = y.reshape(rows * columns)[None, :]
    return z.masked_fill(z > 3, float("inf")).clamp(max=1e3)[:, torch.tensor([1, 0])]


def words(x: Tensor, word: str) -> str:
    assert x.dim() == 2, f"expected two, got {x.dim()}"
    if word == "no":
        raise ValueError(f"no such word as {word}")
    return "{} of {}".format(word, x.size(1)) + "!"


def results(x: Tensor) -> Tuple[Tensor, Tensor, int, Tensor]:
    values, places = x.max(dim=1)
    ordered = torch.sort(x, 1, True)
    most = max(x.size(0), 2) if x.is_floating_point() else min(1, 2)
    return values + ordered[0].sum(), places, most, x.to(torch.float64).double().T


class Kind(enum.Enum):
    MEAN = "mean"
    SUM = "sum"


class Moments(NamedTuple):
    centre: Tensor
    count: int
    kind: Kind = Kind.MEAN


def moments(x: Tensor, kind: Kind) -> Moments:
    centre = x.mean() if kind == Kind.MEAN else x.sum()
    return Moments(centre, x.numel(), kind=kind)


def named(x: Tensor, kind: Kind = Kind.MEAN) -> Tuple[Tensor, int, str]:
    found = moments(x, kind)
    other = Moments(x, 2)
    centre, count, _ = found
    return found.centre + other.centre * centre, found.count + count, other.kind.value


class Running:
    total: Tensor

    def __init__(self, start: Tensor, rate: float, names: List[str]):
        self.total = start
        self.rate = rate
        self.names = names
        self.seen: Dict[str, int] = {}
        self.steps = 0

    def add(self, x: Tensor) -> Tensor:
        self.total = self.total * (1 - self.rate) + x * self.rate
        self.steps += 1
        self.seen[self.names[0]] = self.steps
        return self.total

    def scaled(self, by: float = 2.0) -> Running:
        return Running(self.total * by, self.rate, self.names)


def objects(xs: List[Tensor]) -> Tuple[Tensor, int, Dict[str, int]]:
    running = Running(torch.zeros(3), 0.5, ["a"])
    for x in xs:
        running.add(x)
    other = running.scaled(by=3.0)
    return other.add(running.total), running.steps, running.seen


class Doubled:
    def __init__(self, x: Tensor):
        self.x = x

    def __enter__(self) -> Tensor:
        return self.x * 2

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.x = self.x * 0


def contexts(x: Tensor, w: Tensor) -> Tuple[Tensor, List[bool]]:
    enabled = [torch.is_grad_enabled()]
    with torch.no_grad():
        y = (x * w).sum()
        enabled.append(torch.is_grad_enabled())
        with torch.enable_grad():
            enabled.append(torch.is_grad_enabled())
    with Doubled(x) as twice:
        y = y + twice
    enabled.append(torch.is_grad_enabled())
    return y, enabled


def _cubed(x: Tensor, by: float) -> Tensor:
    return x**3 * by


def forked(x: Tensor) -> Tensor:
    later = [torch.jit.fork(_cubed, x, 0.5), torch.jit.fork(_cubed, x + 1, 2.0)]
    total = x
    for each in later:
        total = total + torch.jit.wait(each)
    return total


def annotated(x: Tensor, other: int | List[int]) -> Tuple[Tensor, List[int]]:
    numbers = torch.jit.annotate(List[int], [])
    if isinstance(other, int):
        numbers.append(other + 1)
    if torch.jit.isinstance(other, List[int]):
        numbers += other
    bias = torch.jit.annotate(Optional[Tensor], None)
    if x.dim() > 1:
        bias = x[0]
    assert bias is not None
    return x + bias, numbers


@torch.jit.script
def _inner(x: Tensor) -> Tensor:
    return x + 1


def calls_scripted(x: Tensor) -> Tensor:
    return _inner(x) * 2


class Net(nn.Module):
    def __init__(self, normed: bool = True) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4, momentum=None) if normed else None
        self.blocks = nn.ModuleList(
            [nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU(inplace=True), nn.Dropout(0.3)) for _ in range(3)]
        )
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.head = nn.Linear(16, 3)
        self.scale = 0.5
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x: Any) -> Any:
        x = self.conv(x)
        if self.norm is not None:
            x = self.norm(x)
        for i, block in enumerate(self.blocks):
            x = x + block(x) * self.scale * i
        x = self.pool(F.max_pool2d(F.gelu(x), 2))
        return F.log_softmax(self.head(x.flatten(1)) + self.shift, dim=-1)


class Counter(nn.Module):
    count: int

    def __init__(self) -> None:
        super().__init__()
        self.count = 3
        self.w = nn.Parameter(torch.randn(2, 2))

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return self.scaled(x) + self.count

    def scaled(self, x: Tensor) -> Tensor:
        return x @ self.w.t()


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(10, 4)
        self.cell = nn.LSTMCell(4, 3)
        self.norm = nn.LayerNorm(3)

    def forward(self, ids: Tensor) -> Tuple[Tensor, Tensor]:
        out, (h, c) = self.lstm(self.embedding(ids))
        y, _ = self.gru(out.transpose(0, 1))
        state = (torch.zeros(y.size(1), 3), torch.zeros(y.size(1), 3))
        for step in y:
            state = self.cell(step, state)
        return self.norm(state[0]), h + c


class Attention(nn.Module):
    def __init__(self, dim: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.layer = nn.TransformerEncoderLayer(dim, heads, 16, batch_first=True, norm_first=True)
        self.attention = nn.MultiheadAttention(dim, heads)

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tuple[Tensor, Optional[Tensor]]:
        batch, length, width = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        x = x + self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))
        x = self.layer(x)
        y, weights = self.attention(x, x, x, attn_mask=torch.zeros(batch, batch, dtype=torch.bool))
        return x + y, weights


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.GroupNorm(2, 4), nn.SiLU())
        self.up = nn.ConvTranspose2d(4, 1, 2, stride=2)
        self.upsample = nn.Upsample(scale_factor=2)
        self.norm = nn.InstanceNorm2d(4, affine=True)

    def forward(self, x: Tensor) -> Tensor:
        low = self.norm(self.down(x))
        wide = F.normalize(F.interpolate(low, scale_factor=2.0, mode="bilinear", align_corners=True), dim=1)
        return torch.cat([x, torch.sigmoid(self.up(low)), self.upsample(low), wide], 1).float()


class Marked(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if torch.jit.is_scripting():
            return x + 0
        return self.python(x)

    @torch.jit.export
    def twice(self, x: Tensor) -> Tensor:
        return x * 2

    @torch.jit.ignore
    def python(self, x: Tensor) -> Tensor:
        return torch.tensor(x.numpy())


def cases() -> Dict[str, Tuple[Any, Tuple[Any, ...]]]:
    """What is saved, with the arguments of a call."""
    torch.manual_seed(0)
    r = torch.randn
    return {
        "branches": (branches, (r(3).abs(),)),
        "other branch": (branches, (-r(3).abs(),)),
        "loops": (loops, (r(4), 7)),
        "lists": (lists, ([r(4), r(4), r(4)],)),
        "optional": (optional, (r(3), r(3))),
        "dicts": (dicts, (r(2, 3),)),
        "calls": (calls, (r(2, 3),)),
        "subscripts": (subscripts, (r(3, 4),)),
        "words": (words, (r(2, 3), "hi")),
        "results": (results, (r(2, 3),)),
        "named tuples and enumerations": (named, (r(3),)),
        "objects": (objects, ([r(3), r(3)],)),
        "contexts": (contexts, (r(3), r(3))),
        "forked": (forked, (r(3),)),
        "annotated": (annotated, (r(2, 3), [4, 5])),
        "a scripted function inside": (calls_scripted, (r(3),)),
        "net": (Net().eval(), (r(2, 1, 8, 8),)),
        "net in training": (Net(), (r(2, 1, 8, 8),)),
        "net without a norm": (Net(False).eval(), (r(2, 1, 8, 8),)),
        "counter": (Counter(), (r(3, 2),)),
        "recurrent": (Recurrent(), (torch.tensor([[1, 2, 0], [4, 5, 6]]),)),
        "attention": (Attention().eval(), (r(2, 3, 8), torch.ones(3, 3).tril())),
        "unet": (UNet(), (r(1, 1, 8, 8),)),
        "marked": (Marked(), (r(2),)),
    }
