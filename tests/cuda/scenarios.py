"""Programs that run on a CUDA device and on the CPU and must give the same: `python -m tests.cuda.scenarios`.

Without a GPU, `--simulated` runs them on the CUDA backend with the host's memory. `--beside-pytorch` runs users'
programs, which use whole networks, streams, graphs and processes, under PyTorch and under Flambeau, and prints a table:

    python -m tests.cuda.scenarios --beside-pytorch                        # all, on the GPU
    python -m tests.cuda.scenarios --beside-pytorch --simulated 'spars*'   # a kind or a name, without a GPU
    python -m tests.cuda.scenarios --beside-pytorch --record answers.json  # what PyTorch gave, for machines without one
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from typing import Any

import flambeau as torch

F = torch.nn.functional
Tensors = list[Any]


def _differentiated(function: Callable[..., Any], *shapes: tuple[int, ...], dtype: Any = torch.float32) -> Any:
    """A scenario: the result of `function` on random tensors, and the gradients of these."""

    def scenario(device: str) -> Tensors:
        torch.manual_seed(0)
        given = [torch.randn(shape).to(dtype).to(device).requires_grad_() for shape in shapes]
        result = function(*given)
        weights = torch.arange(result.numel(), dtype=torch.float32).reshape(result.shape).remainder(5)
        (result * weights.to(dtype).to(device)).sum().backward()
        return [result, *[each.grad for each in given]]

    return scenario


def _labels(like: Any) -> Any:
    return torch.arange(8, device=like.device) % 5


def _trained(make: Callable[[Any], Any]) -> Any:
    """A scenario: parameters after some steps of an optimizer."""

    def scenario(device: str) -> Tensors:
        torch.manual_seed(0)
        params = [torch.randn(shape).to(device).requires_grad_() for shape in ((3, 4), (1030,), (2, 2, 2), ())]
        optimizer = make(params)
        for step in range(3):
            optimizer.zero_grad()
            sum((each * each.detach().cos() * (step + 1)).sum() for each in params).backward()
            torch.nn.utils.clip_grad_norm_(params, 1.0)
            optimizer.step()
        return list(params)

    return scenario


def _network(device: str) -> Tensors:
    torch.manual_seed(0)
    layers = torch.nn
    net = layers.Sequential(
        layers.Conv2d(1, 4, 3, bias=False), layers.BatchNorm2d(4), layers.ReLU(), layers.MaxPool2d(2), layers.Flatten(),
        layers.Linear(36, 10),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    images, labels = torch.randn(16, 1, 8, 8).to(device), torch.randint(0, 10, (16,)).to(device)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [*losses, *net.parameters()]


def _saved(device: str) -> Tensors:
    file = io.BytesIO()
    torch.save({"x": torch.arange(5.0).to(device)}, file)
    file.seek(0)
    assert torch.load(file)["x"].device.type == device
    file.seek(0)
    return [torch.load(file, map_location="cpu")["x"]]


def _convolution(channels_last: bool) -> Any:
    def run(images: Any, weight: Any, bias: Any) -> Any:
        if channels_last:
            images = images.contiguous(memory_format=torch.channels_last)
        return F.conv2d(images, weight, bias, stride=2, padding=1, groups=2)

    return _differentiated(run, (2, 4, 9, 8), (6, 2, 3, 3), (6,))


def _in_last(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of images with their channels innermost in memory; so must its result be."""

    def run(images: Any, *rest: Any) -> Any:
        result = function(images.contiguous(memory_format=torch.channels_last), *rest)
        assert result.is_contiguous(memory_format=torch.channels_last)
        return result

    return run


def _batch_norm(training: bool, momentum: float = 0.2) -> Callable[..., Any]:
    """With its running statistics as part of the result, so that they are compared too."""

    def run(x: Any, weight: Any, bias: Any) -> Any:
        mean, variance = torch.full_like(weight, 0.5).detach(), torch.full_like(weight, 2.0).detach()
        result = F.batch_norm(x + 3, mean, variance, weight, bias, training, momentum)
        return result + (mean + variance).reshape(1, -1, *[1] * (x.dim() - 2))

    return run


def _recurrent(make: Any, packed: bool = False) -> Callable[[str], Tensors]:
    """A scenario: the results of a recurrent network of two layers, and the gradients of its parameters."""

    def scenario(device: str) -> Tensors:
        torch.manual_seed(0)
        network = make(6, 8, 2)
        steps = torch.randn(5, 3, 6).to(device).requires_grad_()
        network.to(device)
        given = torch.nn.utils.rnn.pack_padded_sequence(steps, [5, 4, 2]) if packed else steps
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            output, states = network(given)
            output = output.data if packed else output
            last = states[0] + states[1].cos() if isinstance(states, tuple) else states
            ((output * output).sum() + last.sum()).backward()
        return [output, last, steps.grad, *[each.grad for each in network.parameters()]]

    return scenario


def _scattered(into: Any, values: Any) -> Any:
    """All reductions into positions of which some are met several times, and some never."""
    index = (torch.arange(values.numel()) * 7 % 9).reshape(values.shape).to(into.device)
    kinds = ("sum", "mean", "prod", "amax", "amin")
    return sum(into.scatter_reduce(0, index, values, kind, include_self=kind != "mean") for kind in kinds)


_IMAGES, _CHANNELS = (3, 16, 6, 5), ((16,), (16,))
_HALF = {"dtype": torch.bfloat16}
SCENARIOS: dict[str, Callable[[str], Tensors]] = {
    "softmax": _differentiated(lambda x: F.softmax(x, 1), (5, 300)),
    "softmax of columns": _differentiated(lambda x: F.log_softmax(x, 1), (4, 6, 9)),
    "softmax in half precision": _differentiated(lambda x: F.softmax(x, -1), (3, 7), **_HALF),
    "softmax of rows that are hidden": _differentiated(
        lambda x: torch.ops.aten._safe_softmax(x.masked_fill(x.detach().abs() > 0.7, -torch.inf), -1), (40, 3)
    ),
    "attention with dropout": _differentiated(
        lambda q, k, v: F.scaled_dot_product_attention(
            q, k, v, torch.ones(6, 6, dtype=torch.bool, device=q.device).tril(-1), dropout_p=1e-30
        ),
        (2, 3, 6, 8),
        (2, 3, 6, 8),
        (2, 3, 6, 8),
    ),
    "rows by position": _differentiated(
        lambda x: (
            x[torch.tensor([2, -1, 0, 2], device=x.device)] + x[:, torch.tensor([[1], [-3]], device=x.device)].sum()
        ),
        (5, 3, 4),
    ),
    "layer_norm": _differentiated(lambda x, w, b: F.layer_norm(x, (20,), w, b), (6, 5, 20), (20,), (20,)),
    "layer_norm in half precision": _differentiated(lambda x: F.layer_norm(x, (5, 20)), (6, 5, 20), **_HALF),
    "group_norm": _differentiated(lambda x, w, b: F.group_norm(x, 4, w, b), _IMAGES, *_CHANNELS),
    "group_norm of packs": _differentiated(lambda x, w, b: F.group_norm(x, 2, w, b), (2, 6, 8, 16), (6,), (6,)),
    "group_norm without parameters": _differentiated(lambda x: F.group_norm(x, 3), (4, 6)),
    "group_norm in half precision": _differentiated(
        lambda x, w, b: F.group_norm(x, 4, w, b), (2, 8, 4, 4), (8,), (8,), **_HALF
    ),
    "group_norm of channels last": _differentiated(
        lambda x, w, b: F.group_norm(x.contiguous(memory_format=torch.channels_last), 4, w, b), _IMAGES, *_CHANNELS
    ),
    "rms_norm": _differentiated(lambda x, w: F.rms_norm(x, (20,), w), (6, 5, 20), (20,)),
    "reductions": _differentiated(lambda x: x.sum(0) + x.mean(0) + x.amax(0), (50, 20)),
    "reductions in half precision": _differentiated(
        lambda x: x.sum([0, 2]) + x.mean(2).sum(0) + x.sum() + x[:0].sum(0).sum(1), (9, 16, 3), **_HALF
    ),
    "linear": _differentiated(F.linear, (6, 5, 20), (7, 20), (7,)),
    "linear in half precision": _differentiated(F.linear, (6, 5, 20), (7, 20), (7,), **_HALF),
    "linear of a matrix": _differentiated(F.linear, (6, 16), (24, 16), (24,), **_HALF),
    "linear of complex numbers": _differentiated(
        lambda x, w, b: F.linear(*[torch.complex(each, each.flip(-1)) for each in (x, w, b)]).abs(),
        (6, 20),
        (7, 20),
        (7,),
    ),
    "batches of products": _differentiated(lambda x, y: x @ y.transpose(-1, -2), (2, 3, 4, 5), (3, 6, 5)),
    "cross_entropy": _differentiated(lambda x: F.cross_entropy(x, _labels(x)), (8, 5)),
    "cross_entropy of places": _differentiated(
        lambda x: F.cross_entropy(x, _labels(x).reshape(2, 4), ignore_index=2, reduction="sum"), (2, 5, 4)
    ),
    "dropout's gradient": _differentiated(
        lambda x: torch.ops.aten.native_dropout_backward(x, torch.ones(x.shape, device=x.device) > 0, 1.5), (6, 5)
    ),
    "embedding": _differentiated(
        lambda w: F.embedding(torch.tensor([[1, 2, 1], [0, 4, 2]], device=w.device), w, padding_idx=2), (5, 7)
    ),
    "embedding of many": _differentiated(
        lambda w: F.embedding(torch.arange(700, device=w.device) * 37 % 11, w), (12, 5)
    ),
    "embedding of even rows": _differentiated(
        lambda w: F.embedding(torch.tensor([3, 1, 1], dtype=torch.int32, device=w.device), w), (5, 16), **_HALF
    ),
    "index_select": _differentiated(lambda x: x.index_select(1, torch.tensor([2, 0, 2], device=x.device)), (4, 3, 8)),
    "gather": _differentiated(
        lambda x: x.transpose(0, 1).gather(
            1, torch.tensor([[2, 0], [1, 1]], device=x.device)[..., None].expand(2, 2, 3)
        ),
        (3, 4, 5),
    ),
    "relu in place": _differentiated(_in_last(lambda x: F.relu(x * 1.0, inplace=True)), (2, 80, 7, 6)),
    "sigmoid in place": _differentiated(lambda x: (x * 1.0).sigmoid_(), (90, 60)),
    "rows and columns together": _differentiated(lambda x, y, z: x.T * y + z, (24, 80), (24,), (80, 1)),
    "strided packs": _differentiated(lambda x: x.reshape(4, 6, 5, 8).permute(0, 2, 1, 3) + 1, (4, 240), **_HALF),
    "scatter_reduce": _differentiated(_scattered, (12, 5), (30, 5)),
    "scatter_reduce in half precision": _differentiated(_scattered, (12, 5), (30, 5), **_HALF),
    "LSTM": _recurrent(torch.nn.LSTM),
    "LSTM, packed": _recurrent(torch.nn.LSTM, packed=True),
    "GRU": _recurrent(torch.nn.GRU),
    "convolution": _convolution(False),
    "convolution, channels last": _convolution(True),
    "convolution of signals": _differentiated(F.conv1d, (2, 3, 11), (4, 3, 3), (4,)),
    "transposed convolution": _differentiated(
        lambda x, w: F.conv_transpose2d(x, w, stride=2, output_padding=1), (2, 3, 4, 5), (3, 4, 3, 3)
    ),
    "batch_norm of planes": _differentiated(_batch_norm(True), (3, 5, 4, 4), (5,), (5,)),
    "batch_norm of lines": _differentiated(_in_last(_batch_norm(True)), _IMAGES, *_CHANNELS),
    "batch_norm of a matrix": _differentiated(_batch_norm(True), (7, 6), (6,), (6,)),
    "batch_norm in evaluation": _differentiated(_in_last(_batch_norm(False)), _IMAGES, *_CHANNELS),
    "batch_norm in half precision": _differentiated(
        lambda x: F.batch_norm(x, None, None, None, None, True), _IMAGES, **_HALF
    ),
    "max_pool": _differentiated(lambda x: F.max_pool2d(x, 3, 2, 1), _IMAGES),
    "max_pool, channels last": _differentiated(_in_last(lambda x: F.max_pool2d(x, (3, 2), 1, 1, (1, 2))), _IMAGES),
    "max_pool of signals": _differentiated(lambda x: F.max_pool1d(x, 3, ceil_mode=True), (2, 3, 11)),
    "adaptive_max_pool": _differentiated(lambda x: F.adaptive_max_pool2d(x, (3, 1)), _IMAGES),
    "avg_pool": _differentiated(lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), _IMAGES),
    "avg_pool, channels last": _differentiated(_in_last(lambda x: F.avg_pool2d(x, 3, 2, 1)), _IMAGES),
    "adaptive_avg_pool": _differentiated(lambda x: F.adaptive_avg_pool2d(x, (4, 3)), _IMAGES),
    "attention": _differentiated(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *[(2, 3, 10, 16)] * 3, **_HALF
    ),
    "attention, tokens before heads": _differentiated(
        lambda x: F.scaled_dot_product_attention(
            *x.reshape(2, 10, 3, 2, 16).permute(2, 0, 3, 1, 4).unbind(0), scale=0.3
        ),
        (2, 10, 96),
        **_HALF,
    ),
    "attention with a mask": _differentiated(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, torch.ones(10, 7, device=q.device).tril(-1) > 0),
        (2, 3, 10, 16),
        (2, 3, 7, 16),
        (2, 3, 7, 16),
        **_HALF,
    ),
    "addmm": _differentiated(lambda x, y, z: torch.addmm(x, y, z, beta=0.5, alpha=2), (6, 7), (6, 5), (5, 7), **_HALF),
    "SGD": _trained(lambda params: torch.optim.SGD(params, 0.1, momentum=0.9)),
    "Adam": _trained(lambda params: torch.optim.Adam(params, 0.1, weight_decay=0.1)),
    "a network": _network,
    "saving and loading": _saved,
}


def differs(name: str) -> str | None:
    """What a scenario gives otherwise on the device than on the CPU."""
    expected, actual = SCENARIOS[name]("cpu"), SCENARIOS[name]("cuda")
    for number, (want, found) in enumerate(zip(expected, actual, strict=True)):
        tolerance = 3e-2 if want.dtype is torch.bfloat16 else 2e-5
        want, found = want.detach().double(), found.detach().cpu().double()
        if not torch.allclose(found, want, tolerance, tolerance):
            return f"{name}: result {number} is off by {(found - want).abs().max().item():.3g}"
    return None


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.cuda.scenarios")
    parser.add_argument("--simulated", action="store_true", help="on the CUDA backend with the host's memory")
    parser.add_argument("--beside-pytorch", action="store_true", help="users' programs, under PyTorch and Flambeau")
    parser.add_argument("--record", help="a file for PyTorch's answers")
    parser.add_argument("patterns", nargs="*", help="names or kinds of users' programs")
    options = parser.parse_args()
    if options.simulated:
        from tests.support.simulated_cuda import install_simulated_device

        install_simulated_device()
    if options.beside_pytorch:
        from . import beside_pytorch

        return beside_pytorch.main(options.patterns, options.simulated, options.record)
    found = [each for each in map(differs, SCENARIOS) if each is not None]
    print("\n".join(found) or f"all {len(SCENARIOS)} scenarios agree")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
