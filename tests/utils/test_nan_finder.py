"""`flambeau.utils.nan_finder`: the first op that makes a NaN out of none, with its line and module."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau
from flambeau import nn

NAN = float("nan")


class Logarithm(nn.Module):
    def forward(self, x: Any) -> Any:
        return (x - 1).log()


def test_forward_names_op_line_and_module() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Sequential(Logarithm()))
    with flambeau.utils.nan_finder(), pytest.raises(RuntimeError) as caught:
        net(flambeau.tensor([[0.5, 3.0]]))
    message = str(caught.value)
    assert "log made nan out of arguments without any: 1 of 2 elements of its result, of shape [1, 2]" in message
    assert f"{__file__}:" in message
    assert '"return (x - 1).log()"' in message
    assert caught.value.__notes__ == ["in module `1.0` (Logarithm) of Sequential"]


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("div", lambda x: x.sub_(1).div_(0)),
        ("sqrt", lambda x: (x - 2).sqrt()),
        ("mm", lambda x: x.reshape(2, 1) * float("inf") @ flambeau.tensor([[1.0, -1.0]]) @ flambeau.ones(2, 1)),
        ("acos", lambda x: flambeau.acos(x + 1, out=flambeau.zeros(2))),
    ],
)
def test_first_op(name: str, program: Any) -> None:
    x = flambeau.ones(2)
    with flambeau.utils.nan_finder(), pytest.raises(RuntimeError, match=f"^{name} made nan"):
        program(x)


def test_backward_pass_is_watched_too() -> None:
    x = flambeau.zeros(2, requires_grad=True)
    loss = (x.sqrt() * 0).sum()
    with flambeau.utils.nan_finder(), pytest.raises(RuntimeError, match="in a backward pass"):
        loss.backward()


def test_nan_that_was_there_is_let_through() -> None:
    with flambeau.utils.nan_finder():
        x = flambeau.tensor([NAN, 1.0])
        assert (x * 2).log().isnan().tolist() == [True, False]
        flambeau.empty(100).normal_()
        flambeau.full((2,), NAN).add_(1)
        flambeau.arange(3).float() / 2


def test_a_watched_step_gives_the_same_bits() -> None:
    def step() -> Any:
        flambeau.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(), nn.Linear(8, 2))
        optimizer = flambeau.optim.Adam(net.parameters())
        net(flambeau.randn(3, 4)).square().sum().backward()
        optimizer.step()
        return [each.detach().numpy().tobytes() for each in net.parameters()]

    plain = step()
    with flambeau.utils.nan_finder():
        assert step() == plain


def test_anomaly_mode_leaves_forward_alone() -> None:
    """As in PyTorch, it looks at gradients only."""
    with flambeau.autograd.set_detect_anomaly(True):
        assert flambeau.tensor(-1.0).sqrt().isnan()
