"""What is in an archive, as a tree to print."""

from __future__ import annotations

from .glob_group import GlobGroup


class Directory:
    """A file, or a folder with what is in it.

    Args:
        name (str): the name.
        is_dir (bool): whether it is a folder.

    Example:
        >>> torch.package.Directory("model", True).name
        'model'
    """

    def __init__(self, name: str, is_dir: bool) -> None:
        self.name = name
        self.is_dir = is_dir
        self.children: dict[str, Directory] = {}

    def _add_file(self, path: str) -> None:
        *folders, last = path.split("/")
        here = self
        for folder in folders:
            here = here.children.setdefault(folder, Directory(folder, True))
        here.children[last] = Directory(last, False)

    def has_file(self, filename: str) -> bool:
        """Whether there is such a file, or folder, below it."""
        here = self
        for part in filename.split("/"):
            found = here.children.get(part)
            if found is None:
                return False
            here = found
        return True

    def __str__(self) -> str:
        lines: list[str] = []
        self._show(lines, [])
        return "".join(lines)

    def _show(self, lines: list[str], open_above: list[bool], is_last: bool = True) -> None:
        """A line for itself and those for what is in it; `open_above`: which folders around it go on below."""
        if not open_above:
            lines.append(f"─── {self.name}\n")
        else:
            margin = "".join("│   " if each else "    " for each in open_above[1:])
            lines.append(f"    {margin}{'└── ' if is_last else '├── '}{self.name}\n")
        folders = sorted(name for name, child in self.children.items() if child.is_dir)
        names = folders + sorted(name for name, child in self.children.items() if not child.is_dir)
        for name in names:
            self.children[name]._show(lines, [*open_above, not is_last and bool(open_above)], name == names[-1])


def structure(name: str, paths: list[str], include: GlobGroup) -> Directory:
    """The tree of those paths that fit."""
    top = Directory(name, True)
    for path in paths:
        if include.matches(path):
            top._add_file(path)
    return top
