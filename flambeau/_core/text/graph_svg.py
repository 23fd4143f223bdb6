"""The graph of autograd as a picture: a box for each node, from a result at the top to the leaves at the bottom."""

from __future__ import annotations

from html import escape
from typing import Any

_MOST = 150
"""How many nodes are drawn; of more, those nearest to the result."""
_BOX, _LINE, _GAP = 26, 58, 18
_CHARACTER = 7.2
_STYLE = "font-family:monospace;font-size:12px"


def graph_svg(root: Any) -> str:
    """The graph behind a node."""
    nodes, is_whole = _nodes(root)
    rows = _rows(nodes, root)
    labels = {node: _label(node) for node in nodes}
    widths = {node: len(labels[node]) * _CHARACTER + 16 for node in nodes}
    row_widths = [sum(widths[node] for node in row) + _GAP * (len(row) - 1) for row in rows]
    width, height = max(row_widths) + 2 * _GAP, len(rows) * _LINE + _GAP
    places = {}
    for level, (row, row_width) in enumerate(zip(rows, row_widths, strict=True)):
        x = (width - row_width) / 2
        for node in row:
            places[node] = (x + widths[node] / 2, _GAP + level * _LINE)
            x += widths[node] + _GAP
    lines = [_edge(places[node], places[target]) for node in nodes for target in _targets(node) if target in places]
    boxes = [_box(*places[node], widths[node], labels[node], hasattr(node, "variable")) for node in nodes]
    note = "" if is_whole else f'<text x="4" y="12" style="{_STYLE}">the {_MOST} nodes nearest to the result</text>'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}">'
    return "".join([start, note, *lines, *boxes, "</svg>"])


def graph_nodes(root: Any) -> list[Any]:
    """The nodes whose boxes `graph_svg` draws, in the order of the boxes."""
    return _nodes(root)[0]


def _targets(node: Any) -> list[Any]:
    return [target for target, _ in node.next_functions if target is not None]


def _nodes(root: Any) -> tuple[list[Any], bool]:
    """The nodes behind `root`, nearest first, and whether these are all."""
    found, seen = [root], {root}
    for node in found:  # it grows meanwhile
        for target in _targets(node):
            if target not in seen:
                seen.add(target)
                found.append(target)
        if len(found) > _MOST:
            return found[:_MOST], False
    return found, True


def _rows(nodes: list[Any], root: Any) -> list[list[Any]]:
    """The nodes by their level: below every node that they hand their result to."""
    known = set(nodes)
    waiting = dict.fromkeys(nodes, 0)
    for node in nodes:
        for target in _targets(node):
            if target in known:
                waiting[target] += 1
    level = {root: 0}
    ready = [root]
    for node in ready:  # it grows meanwhile
        for target in _targets(node):
            if target in known:
                level[target] = max(level.get(target, 0), level[node] + 1)
                waiting[target] -= 1
                if waiting[target] == 0:
                    ready.append(target)
    rows: list[list[Any]] = [[] for _ in range(max(level.values()) + 1)]
    for node in ready:
        rows[level[node]].append(node)
    return rows


def _label(node: Any) -> str:
    variable = getattr(node, "variable", None)
    if variable is not None:
        return f"leaf {tuple(variable.shape)}"
    name: str = node.name()
    return name.removesuffix("0").removesuffix("Backward")


def _edge(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x, y), (to_x, to_y) = start, end
    path = f"M{x:.0f},{y + _BOX} C{x:.0f},{y + _LINE - 8} {to_x:.0f},{to_y - 24} {to_x:.0f},{to_y}"
    return f'<path d="{path}" fill="none" stroke="#868e96"/>'


def _box(x: float, y: float, width: float, label: str, is_leaf: bool) -> str:
    colour = "#d3f9d8" if is_leaf else "#fff3bf"
    rectangle = (
        f'<rect x="{x - width / 2:.0f}" y="{y}" width="{width:.0f}" height="{_BOX}" rx="5" fill="{colour}" '
        'stroke="#868e96"/>'
    )
    text = f'<text x="{x:.0f}" y="{y + 17}" text-anchor="middle" style="{_STYLE}" fill="#212529">{escape(label)}</text>'
    return rectangle + text
