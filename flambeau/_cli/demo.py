"""`flambeau demo`: a network learns two spirals, and the terminal shows what it has learned so far."""

from __future__ import annotations

import argparse
import math
import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

from .terminal import CommandError, coloured, has_colours, say

if TYPE_CHECKING:
    from .._core.tensor import Tensor

SUMMARY = "train a small network and watch what it learns, in the terminal"
DESCRIPTION = (
    "Train a network of two hidden layers to tell two spirals apart, and draw what it makes of the plane while it "
    "learns. It takes a few seconds, needs no file, and gives the same numbers on every run."
)

_POINTS, _HIDDEN, _PICTURES = 200, 64, 12
_WIDTH, _HEIGHT, _EXTENT = 56, 22, 1.15
_SHADES = " .:-=+*#%@"
"""From what is surely the first spiral to what is surely the second, where there are no colours."""
_FIRST, _SECOND = (230, 126, 34), (41, 98, 168)
"""Red, green and blue of the spirals."""
_SPARKS = "▁▂▃▄▅▆▇█"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("--steps", type=int, default=600, help="how many steps to train (default: 600)")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (default: 0)")


def run(arguments: argparse.Namespace) -> int:
    """Train, and draw."""
    if arguments.steps < 1:
        raise CommandError(f"--steps must be at least 1, got {arguments.steps}")
    import flambeau as torch

    torch.manual_seed(arguments.seed)
    points, labels = _spirals(torch)
    model = torch.nn.Sequential(
        torch.nn.Linear(2, _HIDDEN), torch.nn.Tanh(),
        torch.nn.Linear(_HIDDEN, _HIDDEN), torch.nn.Tanh(),
        torch.nn.Linear(_HIDDEN, 1),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    parameters = sum(each.numel() for each in model.parameters())
    say(f"A network of {parameters:,} parameters learns to tell two spirals of {_POINTS} points each apart.")
    losses: list[float] = []
    begin, every, drawn = time.perf_counter(), max(arguments.steps // _PICTURES, 1), 0
    for step in range(1, arguments.steps + 1):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(points).squeeze(1), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        is_last = step == arguments.steps
        if is_last or (step % every == 0 and has_colours(sys.stdout)):
            with torch.no_grad():
                right = ((model(points).squeeze(1) > 0) == labels.bool()).float().mean().item()
            drawn = _show(_picture(torch, model, sys.stdout), step, losses, right, drawn)
    seconds = time.perf_counter() - begin
    say(f"{arguments.steps} steps in {seconds:.1f} s. The program is a page long: {coloured(__file__, 'bold')}")
    say("Next: flambeau learn, lessons about how such a network is trained.")
    return 0


def _spirals(torch: Any) -> tuple[Tensor, Tensor]:
    """Points of two spirals with a little noise, and which of the two each belongs to."""
    turn = torch.linspace(0.25, 3.2, _POINTS) * math.pi
    radius = turn / turn.max()
    arms = [torch.stack([sign * radius * turn.cos(), sign * radius * turn.sin()], 1) for sign in (1, -1)]
    points = torch.cat(arms) + 0.01 * torch.randn(2 * _POINTS, 2)
    return points, torch.cat([torch.zeros(_POINTS), torch.ones(_POINTS)])


def _picture(torch: Any, model: Any, stream: TextIO) -> list[str]:
    """The lines of a map of the plane, by how sure the network is of either spiral."""
    down, across = torch.meshgrid(
        torch.linspace(_EXTENT, -_EXTENT, 2 * _HEIGHT), torch.linspace(-_EXTENT, _EXTENT, _WIDTH), indexing="ij"
    )
    with torch.no_grad():
        sure = model(torch.stack([across, down], 2).reshape(-1, 2)).sigmoid().reshape(down.shape).tolist()
    if has_colours(stream):  # one character has two rows of the map: its upper half, and its lower one
        pairs = [zip(sure[2 * line], sure[2 * line + 1], strict=True) for line in range(_HEIGHT)]
        return ["".join([_halves(upper, lower) for upper, lower in line]) + "\033[0m" for line in pairs]
    return ["".join([_SHADES[min(int(each * len(_SHADES)), len(_SHADES) - 1)] for each in line]) for line in sure[::2]]


def _halves(upper: float, lower: float) -> str:
    return f"\033[38;2;{_colour(upper)}m\033[48;2;{_colour(lower)}m▀"


def _colour(sure: float) -> str:
    """Between the colours of the spirals, and white where the network does not know."""
    ends, far = (_SECOND if sure > 0.5 else _FIRST), abs(2 * sure - 1)
    return ";".join([str(round(255 + (end - 255) * far)) for end in ends])


def _show(picture: list[str], step: int, losses: list[float], right: float, drawn: int) -> int:
    """Draw over what was drawn, `drawn` lines of it; how many lines there are now."""
    curve = "".join([_SPARKS[_height(each, max(losses))] for each in losses[:: max(len(losses) // 40, 1)][-40:]])
    lines = [*picture, f"step {step:5d}  loss {losses[-1]:.4f}  right {right:.1%}  {curve}"]
    if drawn:
        sys.stdout.write(f"\033[{drawn}A")
    for line in lines:
        say(line)
    sys.stdout.flush()
    return len(lines)


def _height(loss: float, most: float) -> int:
    return min(int(loss / most * len(_SPARKS)), len(_SPARKS) - 1)
