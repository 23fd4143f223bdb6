"""What needs what: a graph of modules and pickles."""

from __future__ import annotations

from collections import deque


class Dependencies:
    """Edges from what needs something to what it needs."""

    def __init__(self) -> None:
        self._needs: dict[str, dict[str, bool]] = {}

    def add(self, name: str, needed_by: str | None = None) -> None:
        """Something is needed, by something or for itself."""
        self._needs.setdefault(name, {})
        if needed_by is not None:
            self._needs.setdefault(needed_by, {})[name] = True

    def needed_by(self, name: str) -> list[str]:
        """What needs it directly."""
        return [other for other, needs in self._needs.items() if name in needs]

    def first_path(self, name: str) -> list[str]:
        """The shortest way to it from something that is needed for itself."""
        waiting = deque([[name]])
        seen = {name}
        while waiting:
            path = waiting.popleft()
            above = [each for each in self.needed_by(path[0]) if each not in seen]
            if not above:
                return path
            seen.update(above)
            waiting.extend([each, *path] for each in above)
        return [name]

    def paths(self, start: str, end: str) -> list[tuple[str, str]]:
        """The edges on any way from one to the other."""
        below, above = self._reached(start, self._needs), self._reached(end, self._turned())
        return [(each, need) for each in self._needs for need in self._needs[each] if each in below and need in above]

    def _turned(self) -> dict[str, dict[str, bool]]:
        turned: dict[str, dict[str, bool]] = {name: {} for name in self._needs}
        for name, needs in self._needs.items():
            for need in needs:
                turned.setdefault(need, {})[name] = True
        return turned

    @staticmethod
    def _reached(start: str, edges: dict[str, dict[str, bool]]) -> set[str]:
        reached, waiting = {start}, [start]
        while waiting:
            new = [each for each in edges.get(waiting.pop(), {}) if each not in reached]
            reached.update(new)
            waiting += new
        return reached

    def edges(self) -> list[tuple[str, str]]:
        """All of them."""
        return [(name, need) for name, needs in self._needs.items() for need in needs]


def as_dot(edges: list[tuple[str, str]]) -> str:
    """Edges in the language of Graphviz."""
    lines = "".join(f'"{name}" -> "{need}";\n' for name, need in edges)
    return f"digraph G {{\nrankdir = LR;\nnode [shape=box];\n{lines}}}\n"
