"""A snapshot of device memory as a page: what was in use over time, and what was live at the peak, by line."""

from __future__ import annotations

from html import escape
from typing import Any

_COLOURS = ("#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f", "#edc948", "#b07aa1", "#ff9da7", "#9c755f")
_WIDTH, _HEIGHT = 1000, 320
_MOST_LINES = 9
_MOST_POINTS = 2000


def _place(frames: list[dict[str, Any]]) -> str:
    """The innermost line of the program, with the function that it is in."""
    return f"{frames[0]['filename']}:{frames[0]['line']} ({frames[0]['name']})" if frames else "(not recorded)"


class _Timeline:
    """The bytes in use after each step, in total and by line."""

    def __init__(self, steps: list[dict[str, Any]]) -> None:
        self.live: dict[int, tuple[int, str]] = {}
        self.totals: list[int] = []
        self.by_line: list[dict[str, int]] = []
        self.peak: dict[int, tuple[int, str]] = {}
        self.failures: list[int] = []
        held: dict[str, int] = {}
        total = highest = 0
        for step in steps:
            action = step["action"]
            if action == "alloc":
                line = _place(step["frames"])
                self.live[step["addr"]] = step["size"], line
                held[line] = held.get(line, 0) + step["size"]
                total += step["size"]
            elif action == "free_requested" and step["addr"] in self.live:
                size, line = self.live.pop(step["addr"])
                held[line] -= size
                total -= size
            elif action == "oom":
                self.failures.append(len(self.totals))
            else:
                continue
            self.totals.append(total)
            self.by_line.append(dict(held))
            if total > highest:
                highest, self.peak = total, dict(self.live)


def _size(count: float) -> str:
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while count >= 1024 and len(units) > 1:
        count /= 1024
        units.pop(0)
    return f"{count:.4g} {units[0]}"


def _chart(timeline: _Timeline, lines: list[str]) -> str:
    """Areas one above the other, one for each line, and the rest."""
    count, highest = len(timeline.totals), max(timeline.totals, default=0) or 1
    chosen = range(0, count, max(1, count // _MOST_POINTS))
    shapes, below = [], [0] * len(chosen)
    for number, line in enumerate([*lines, "all other lines"]):
        above = []
        for at, low in zip(chosen, below, strict=True):
            known = timeline.by_line[at]
            own = (
                known.get(line, 0) if number < len(lines) else timeline.totals[at] - sum(known.get(x, 0) for x in lines)
            )
            above.append(low + own)
        points = [
            f"{at * _WIDTH / max(count - 1, 1):.1f},{_HEIGHT - value * _HEIGHT / highest:.1f}"
            for at, value in [*zip(chosen, above, strict=True), *reversed(list(zip(chosen, below, strict=True)))]
        ]
        colour = _COLOURS[number % len(_COLOURS)] if number < len(lines) else "#bbb"
        shapes.append(f'<polygon fill="{colour}" points="{" ".join(points)}"><title>{escape(line)}</title></polygon>')
        below = above
    for at in timeline.failures:
        x = at * _WIDTH / max(count - 1, 1)
        shapes.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_HEIGHT}" stroke="red"><title>out of memory</title></line>'
        )
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img">{"".join(shapes)}</svg>'


def _table(rows: dict[str, int], lines: list[str], caption: str) -> str:
    text = []
    for line, size in sorted(rows.items(), key=lambda each: -each[1])[:40]:
        colour = _COLOURS[lines.index(line) % len(_COLOURS)] if line in lines else "#bbb"
        text.append(
            f'<tr><td><i style="background:{colour}"></i></td><td>{_size(size)}</td><td>{escape(line)}</td></tr>'
        )
    return f"<h3>{caption}</h3><table>{''.join(text)}</table>"


def _device(number: int, steps: list[dict[str, Any]], segments: list[dict[str, Any]]) -> str:
    timeline = _Timeline(steps)
    at_peak: dict[str, int] = {}
    for size, line in timeline.peak.values():
        at_peak[line] = at_peak.get(line, 0) + size
    lines = [line for line, _ in sorted(at_peak.items(), key=lambda each: -each[1])[:_MOST_LINES]]
    now: dict[str, int] = {}
    for segment in segments:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                place = _place(block["frames"])
                now[place] = now.get(place, 0) + block["size"]
    reserved = sum(each["total_size"] for each in segments)
    return (
        f"<h2>cuda:{number}</h2><p>In use now {_size(sum(now.values()))}, reserved {_size(reserved)}; the peak of the "
        f"recorded {len(timeline.totals)} steps {_size(max(timeline.totals, default=0))}; requests that failed: "
        f"{len(timeline.failures)}.</p>{_chart(timeline, lines)}"
        f"{_table(at_peak, lines, 'Live at the peak, by line')}{_table(now, lines, 'In use now, by line')}"
    )


def memory_page(snapshot: dict[str, Any]) -> str:
    """A page without scripts for a snapshot.

    Args:
        snapshot (dict): what `torch.cuda.memory._snapshot` returns.

    Returns:
        str: the HTML.
    """
    devices = [
        _device(number, steps, [each for each in snapshot["segments"] if each["device"] == number])
        for number, steps in enumerate(snapshot["device_traces"])
    ]
    style = (
        "body{font:14px sans-serif;margin:2em;max-width:1000px}svg{width:100%;height:320px;background:#f6f6f6}"
        "td{padding:2px 8px;vertical-align:top}i{display:inline-block;width:12px;height:12px}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>CUDA memory</title><style>{style}</style>'
        f"<h1>CUDA memory over time</h1>{''.join(devices)}</html>\n"
    )
