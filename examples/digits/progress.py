"""A progress bar for a training loop: live on a terminal, one plain line an epoch everywhere else."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TextIO

BOLD, CYAN, DIM, RESET = "\033[1m", "\033[36m", "\033[2m", "\033[0m"
ERASE_TO_END_OF_LINE = "\033[K"
SHORTEST_BAR = 8
LONGEST_BAR = 30
SECONDS_BETWEEN_REDRAWS = 0.05


def clock(seconds: float) -> str:
    """Minutes and seconds: 75 gives "1:15"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


class ProgressBar:
    """Shows epoch, batch, loss, accuracy and the estimated time to the end of the whole run."""

    def __init__(self, epochs: int, batches: int, stream: TextIO | None = None) -> None:
        self.epochs = epochs
        self.batches = batches
        self.stream = stream if stream is not None else sys.stdout
        self.live = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self.coloured = self.live and not os.environ.get("NO_COLOR")
        self.started = time.monotonic()
        self.last_redraw = 0.0
        try:
            "━─".encode(self.stream.encoding or "ascii")
            self.full, self.empty = "━", "─"
        except UnicodeEncodeError:
            self.full, self.empty = "#", "."

    def update(self, epoch: int, batch: int, loss: float, accuracy: float) -> None:
        """Redraw after `batch` of `epoch` (both counted from 1); `loss` and `accuracy` are this epoch's so far."""
        now = time.monotonic()
        if not self.live or (now - self.last_redraw < SECONDS_BETWEEN_REDRAWS and batch < self.batches):
            return
        self.last_redraw = now
        done = (epoch - 1) * self.batches + batch
        remaining = (now - self.started) / done * (self.epochs * self.batches - done)
        head = self._epoch(epoch)
        tail = f"{batch:>{len(str(self.batches))}}/{self.batches}  {self._scores(loss, accuracy)}"
        eta = f"ETA {clock(remaining)}"
        room = shutil.get_terminal_size().columns - len(head) - len(tail) - len(eta) - 6
        bar = self._bar(batch / self.batches, min(room, LONGEST_BAR)) if room >= SHORTEST_BAR else ""
        self._rewrite_line(f"{self._paint(head, BOLD)}  {bar}{tail}  {self._paint(eta, DIM)}")

    def finish_epoch(self, epoch: int, loss: float, accuracy: float, test_accuracy: float) -> None:
        """Leave one line that stays for `epoch`."""
        scores = f"{self._scores(loss, accuracy)}  test accuracy {test_accuracy:6.2%}"
        elapsed = clock(time.monotonic() - self.started)
        if self.live:
            self._rewrite_line(
                f"{self._paint(self._epoch(epoch), BOLD)}  {scores}  {self._paint(elapsed, DIM)}", end="\n"
            )
        else:
            print(f"{self._epoch(epoch)}  {scores}  {elapsed}", file=self.stream, flush=True)

    def _epoch(self, epoch: int) -> str:
        return f"epoch {epoch:>{len(str(self.epochs))}}/{self.epochs}"

    def _scores(self, loss: float, accuracy: float) -> str:
        return f"loss {loss:.4f}  accuracy {accuracy:6.2%}"

    def _bar(self, fraction: float, width: int) -> str:
        filled = round(fraction * width)
        return self._paint(self.full * filled, CYAN) + self._paint(self.empty * (width - filled), DIM) + "  "

    def _paint(self, text: str, colour: str) -> str:
        return f"{colour}{text}{RESET}" if self.coloured else text

    def _rewrite_line(self, text: str, end: str = "") -> None:
        self.stream.write(f"\r{text}{ERASE_TO_END_OF_LINE}{end}")
        self.stream.flush()
