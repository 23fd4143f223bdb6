"""The twins of torchaudio's compiled operators, against plain loops and against the enumeration of all paths."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

import flambeau
from tests.support.oracle import pytorch as torch

LIBRARY = "/somewhere/torchaudio/lib/{}.abi3.so"


@pytest.fixture(autouse=True)
def _loaded() -> None:
    for name in ("_torchaudio", "libtorchaudio"):
        flambeau.ops.load_library(LIBRARY.format(name))


def test_the_compiled_part_is_replaced() -> None:
    assert flambeau.ops._torchaudio.cuda_version() is None
    assert flambeau.ops._torchaudio.is_align_available() is True
    with pytest.raises(OSError, match="no C"):
        flambeau.ops.load_library(LIBRARY.format("torchaudio_prefixctc"))
    with pytest.raises(OSError, match="no C"):
        flambeau.ops.load_library("/somewhere/_torchaudio.abi3.so")


def test_a_recursive_filter() -> None:
    flambeau.manual_seed(0)
    waves, weights = flambeau.randn(2, 3, 17), flambeau.randn(3, 4) * 0.3
    output = flambeau.zeros(2, 3, 17 + 3)
    before = output._version
    assert flambeau.ops.torchaudio._lfilter_core_loop(waves, weights, output) is None
    assert output._version > before
    expected = [0.0] * 3
    for time in range(17):
        expected.append(float(waves[1, 2, time]) - sum(float(weights[2, k]) * expected[time + k] for k in range(3)))
    assert output[1, 2].tolist() == pytest.approx(expected, abs=1e-5)


def test_overdrive() -> None:
    flambeau.manual_seed(0)
    wave, temp = flambeau.randn(2, 9), flambeau.randn(2, 9)
    output = flambeau.empty(2, 9)
    flambeau.ops.torchaudio._overdrive_core_loop(wave, temp, flambeau.zeros(2), flambeau.zeros(2), output)
    last_in = last_out = 0.0
    for time in range(9):
        last_out = float(temp[1, time]) - last_in + 0.995 * last_out
        last_in = float(temp[1, time])
        assert float(output[1, time]) == pytest.approx(0.5 * float(wave[1, time]) + 0.75 * last_out, abs=1e-6)


def _cost(log_probs: Any, targets: list[int], blank: int) -> Any:
    """The transducer loss of a sample in PyTorch, differentiable, as a sum over every path."""
    times = log_probs.shape[0]
    paths = []
    # A path waits `times - 1` times and emits each target, in any order; a last blank ends it.
    moves = times - 1 + len(targets)
    for waits in itertools.combinations(range(moves), times - 1):
        time = position = 0
        total = log_probs.new_zeros(())
        for move in range(moves):
            if move in waits:
                total, time = total + log_probs[time, position, blank], time + 1
            else:
                total, position = total + log_probs[time, position, targets[position]], position + 1
        paths.append(total + log_probs[time, position, blank])
    return -torch.stack(paths).logsumexp(0)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("clamp", [-1.0, 0.05])
@pytest.mark.parametrize("blank", [0, 4])
def test_the_transducer_loss(fused: bool, clamp: float, blank: int) -> None:
    torch.manual_seed(0)
    logits = torch.randn(3, 4, 4, 5, dtype=torch.float64)
    targets, times, lengths = [[1, 2, 3], [3, 3, 1], [2, 1, 1]], [4, 2, 1], [3, 1, 0]
    costs, gradient = flambeau.ops.torchaudio.rnnt_loss_forward(
        flambeau.from_numpy(logits.numpy()),
        *[flambeau.tensor(each, dtype=flambeau.int32) for each in (targets, times, lengths)],
        blank,
        clamp,
        fused,
    )
    for sample in range(3):
        leaf = logits[sample, : times[sample], : lengths[sample] + 1].clone().requires_grad_()
        cost = _cost(leaf.log_softmax(-1) if fused else leaf, targets[sample][: lengths[sample]], blank)
        (expected,) = torch.autograd.grad(cost, leaf)
        if clamp > 0:
            expected = expected.clamp(-clamp, clamp)
        assert float(costs[sample]) == pytest.approx(float(cost), rel=1e-12)
        found = torch.from_numpy(gradient[sample].numpy())
        torch.testing.assert_close(found[: times[sample], : lengths[sample] + 1], expected)
        found[: times[sample], : lengths[sample] + 1] = 0
        assert not found.any()  # what lies behind a sample's end has no gradient


def test_wrong_arguments_of_the_transducer_loss() -> None:
    good = [flambeau.zeros(1, 2, 2, 3), flambeau.ones(1, 1, dtype=flambeau.int32)]
    good += [flambeau.tensor([2], dtype=flambeau.int32), flambeau.tensor([1], dtype=flambeau.int32)]
    wrong = {
        "4-D": [good[0][0], *good[1:]],
        "input length mismatch": [*good[:2], flambeau.tensor([1]), good[3]],
        "output length mismatch": [*good[:3], flambeau.tensor([0])],
        "classes within": [good[0], good[1] * 7, *good[2:]],
        "batch dimension": [good[0], flambeau.ones(2, 1), *good[2:]],
        "logit_lengths must be": [*good[:2], flambeau.tensor([2, 2]), good[3]],
    }
    for message, args in wrong.items():
        with pytest.raises(RuntimeError, match=message):
            flambeau.ops.torchaudio.rnnt_loss_forward(*args, 0, -1.0, True)
    with pytest.raises(RuntimeError, match="blank must be within"):
        flambeau.ops.torchaudio.rnnt_loss_forward(*good, 3, -1.0, True)


def _collapsed(path: tuple[int, ...], blank: int) -> list[int]:
    return [label for label, _ in itertools.groupby(path) if label != blank]


@pytest.mark.parametrize("labels", [[1], [1, 2], [2, 2], [1, 1, 2]])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_alignment_is_the_best_of_all(labels: list[int], seed: int) -> None:
    flambeau.manual_seed(seed)
    log_probs = flambeau.randn(1, 6, 3).log_softmax(-1)
    targets = flambeau.tensor([labels], dtype=flambeau.int32)
    lengths = flambeau.tensor([6]), flambeau.tensor([len(labels)])
    path, scores = flambeau.ops.torchaudio.forced_align(log_probs, targets, *lengths, 0)
    assert path.shape == (1, 6)
    assert path.dtype == flambeau.int32
    assert scores is log_probs
    values = log_probs[0].tolist()
    best = max(
        (sum(values[time][label] for time, label in enumerate(each)), each)
        for each in itertools.product(range(3), repeat=6)
        if _collapsed(each, 0) == labels
    )
    assert math.isfinite(best[0])
    assert tuple(path[0].tolist()) == best[1]


def test_targets_that_do_not_fit() -> None:
    lengths = flambeau.tensor([2]), flambeau.tensor([2])
    with pytest.raises(RuntimeError, match="too long for CTC"):
        flambeau.ops.torchaudio.forced_align(flambeau.zeros(1, 2, 3), flambeau.tensor([[1, 1]]), *lengths, 0)
