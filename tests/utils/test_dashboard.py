"""`utils.dashboard`: what stands on a terminal at the end, what goes into a pipe, and what it costs the loop."""

from __future__ import annotations

import io
import math
import re
from typing import Any

import pytest

import flambeau
from flambeau.utils.dashboard import Dashboard, board, screen
from flambeau.utils.dashboard.chart import chart
from flambeau.utils.dashboard.series import MOST_POINTS, Series


class Terminal(io.TextIOWrapper):
    """A stream that is a terminal, and what a reader of it sees."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self) -> bool:
        return True

    @property
    def written(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode(self.encoding)

    @property
    def shown(self) -> list[str]:
        """The lines on the screen after all that was written: moves of the cursor and erasures are followed."""
        lines, row = [""], 0
        for code, text in re.findall(r"(\033\[\??\d*[A-Za-z]|\n|\r)|([^\033\n\r]+)", self.written):
            if text:
                lines[row] += text
            elif code == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif code.endswith("F"):
                row -= int(code[2:-1])
                lines[row] = ""
            elif code.endswith("J"):
                lines[row:] = [""]
            elif code.endswith("K"):
                lines[row + 1 : row + 2] = [""]  # the line below is written next, from its start
        return lines


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "30")
    monkeypatch.setattr(board, "SECONDS_BETWEEN_REDRAWS", 0.0)


def run(stream: io.TextIOBase, epochs: int = 3, fail_at: int | None = None) -> None:
    with Dashboard(epochs, title="digits", formats={"accuracy": ".0%"}, stream=stream) as shown:  # type: ignore[arg-type]
        for epoch in shown.epochs():
            for step in shown.steps(range(4)):
                shown.log(loss=flambeau.tensor(1.0 / (epoch + step)), accuracy=0.25 * epoch)
                if epoch == fail_at:
                    raise KeyboardInterrupt
            shown.log("test", loss=0.5 / epoch)
            shown.print(f"note {epoch}")


def test_the_last_picture_stands_once_with_the_lines_above_it() -> None:
    terminal = Terminal()
    run(terminal)
    shown = terminal.shown
    assert [line for line in shown if line.startswith("note")] == ["note 1", "note 2", "note 3"]
    (head,) = [line for line in shown if line.startswith("digits")]
    assert "epoch 3/3  step 4/4" in head
    assert any(line.startswith("accuracy   75% (before: 50%)") for line in shown)
    assert sum("━" in line for line in shown) == 1
    assert all(len(line) < 80 for line in shown)
    assert any("⠉" <= character <= "⣿" for line in shown for character in line)
    assert terminal.written.endswith("\033[?25h")  # the cursor is given back


def test_a_pipe_gets_one_line_an_epoch() -> None:
    pipe = io.StringIO()
    run(pipe)
    lines = [re.sub(r"\d+:\d\d$", "0:00", line) for line in pipe.getvalue().splitlines()]
    assert lines == [
        "note 1",
        "epoch 1/3  loss 0.5208  accuracy 25%  test loss 0.5  0:00",
        "note 2",
        "epoch 2/3  loss 0.3208  accuracy 50%  test loss 0.25  0:00",
        "note 3",
        "epoch 3/3  loss 0.2375  accuracy 75%  test loss 0.1667  0:00",
    ]


def test_the_terminal_is_given_back_after_ctrl_c() -> None:
    terminal = Terminal()
    with pytest.raises(KeyboardInterrupt):
        run(terminal, fail_at=2)
    assert terminal.written.endswith("\033[?25h")
    assert any("epoch 2/3" in line for line in terminal.shown)


@pytest.mark.parametrize(("columns", "lines"), [(20, 5), (200, 60), (1, 1)])
def test_any_size_of_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, lines: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", str(lines))
    terminal = Terminal()
    run(terminal)
    picture = terminal.written.split("\033[?25l")[-1]
    assert picture.count("\n") <= max(1, lines - 1)


def test_a_terminal_without_braille() -> None:
    terminal = Terminal("ascii")
    run(terminal)
    assert any(line.startswith("####") for line in terminal.shown)
    assert any("|" in line and "*" in line for line in terminal.shown)


def test_numbers_that_are_not_finite_and_lengths_that_are_unknown() -> None:
    terminal = Terminal()
    with Dashboard(1, stream=terminal) as shown:
        for _ in shown.epochs():
            for value in shown.steps(iter([math.nan, math.inf, 1.0, -1e308, 1e308])):
                shown.log(loss=value)
    assert any(line.startswith("loss") and "nan" in line for line in terminal.shown)


def test_a_tensor_elsewhere_is_read_when_the_picture_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its value is that of the call, though it changes before it is read."""
    monkeypatch.setattr(board, "SECONDS_BETWEEN_REDRAWS", 1e9)
    reads: list[flambeau.Tensor] = []
    item = flambeau.Tensor.item

    def counted(self: flambeau.Tensor) -> Any:
        reads.append(self)
        return item(self)

    monkeypatch.setattr(flambeau.Tensor, "is_cpu", property(lambda self: False))
    monkeypatch.setattr(flambeau.Tensor, "item", counted)
    pipe = io.StringIO()
    with Dashboard(1, stream=pipe) as shown:
        for _ in shown.epochs():
            total = flambeau.zeros(())
            for _step in shown.steps(range(3)):
                total += 1
                shown.log(total=total)
            assert not reads
    assert "total 2 " in pipe.getvalue()  # the mean of 1, 2 and 3


def test_what_is_no_number_is_refused() -> None:
    shown = Dashboard(1, stream=io.StringIO())
    with pytest.raises(ValueError, match=r"log\(\): 'loss' must be one number, but it has shape \[2\]"):
        shown.log(loss=flambeau.zeros(2))
    with pytest.raises(ValueError, match="epochs must be 1 or more, not 0"):
        Dashboard(0)


def test_a_long_history_keeps_its_shape_in_few_points() -> None:
    series = Series()
    for number in range(100_000):
        series.add(number, number / 100_000)
    points = list(series)
    assert MOST_POINTS / 2 <= len(points) <= MOST_POINTS + 1
    assert all(abs(value / 100_000 - at) < 2 / len(points) for at, value in points)
    assert series.mean == 49_999.5


def test_a_rising_curve_rises() -> None:
    lines = chart([[(step / 10, step) for step in range(11)]], 1.0, 40, 5, False, "{:.0f}".format, lambda _, text: text)
    assert [line.split()[0] for line in (lines[0], lines[-1])] == ["10", "0"]
    places = [line.index("*") for line in lines]
    assert places == sorted(places, reverse=True)
    assert all(len(line) == 40 for line in lines)


def test_colours_by_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    painted = screen.Screen(Terminal())
    lines = chart(
        [[(0.0, 0.0)], [(1.0, 1.0)]],
        1.0,
        20,
        4,
        True,
        str,
        lambda curve, text: painted.paint(text, ("cyan", "yellow")[curve]),
    )
    assert "\033[36m" in lines[-1]
    assert "\033[33m" in lines[0]
