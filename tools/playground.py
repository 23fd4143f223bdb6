"""Writes the playground, a page in which Flambeau runs: `python -m tools.playground FOLDER`, then serve that folder.

With `--pyodide` and `--numpy` the folder has everything; without them the page gets both from a public server.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PUBLIC = "https://cdn.jsdelivr.net/pyodide/v0.28.3/full/"
PAGES = ("index", "learn/tensors", "learn/autograd", "learn/network", "accumulation", "random", "interpreters", "fx")
"""Pages of the documentation whose code is offered; a test runs all of it in the page."""
GRAPH = """import flambeau as torch

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
w = torch.tensor([0.5, -1.0], requires_grad=True)
b = torch.tensor(0.1, requires_grad=True)

hidden = torch.tanh(x @ w + b)
loss = ((hidden - 1) ** 2).mean()
"""
STEPS = 100


def page_code(text: str) -> list[str]:
    """The Python of a page: code cells as they are, of sessions with prompts what was typed."""
    found = []
    for fence, body in re.findall(r"^```(\{code-cell\}[^\n]*|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if "Traceback" in body or "raises-exception" in body:
            continue  # it shows an error
        if ">>>" in body:
            typed = re.findall(r"^(?:>>>|\.\.\.) ?(.*)", body, re.MULTILINE)
            found.append("\n".join(typed) + "\n")
        elif fence != "python":
            lines = [line for line in body.splitlines() if not line.startswith((":", "%"))]
            found.append("\n".join(lines).strip() + "\n")
    return found


def examples() -> list[dict[str, str]]:
    """The programs of the pages, by the pages' titles."""
    found = []
    for page in PAGES:
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        title = re.findall(r"^# (.*)", text, re.MULTILINE)
        if code := page_code(text):
            found.append({"title": title[0], "code": "\n".join(code)})
    return found


def write(target: Path, pyodide: Path | None, numpy: Path | None) -> None:
    """Write the page and its files into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    for name in ("index.html", "playground.mjs"):
        shutil.copyfile(ROOT / "docs" / "_playground" / name, target / name)
    with zipfile.ZipFile(target / "package.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((ROOT / "flambeau").rglob("*")):
            if path.is_file() and path.suffix not in (".pyc", ".pyi"):
                archive.write(path, path.relative_to(ROOT))
        archive.write(ROOT / "docs" / "_playground" / "playground.py", "playground.py")
        archive.write(ROOT / "examples" / "digits" / "mnist5k.npz", "mnist5k.npz")
    settings = {"examples": examples(), "graph": GRAPH, "steps": STEPS, "pyodide": PUBLIC, "numpy": None}
    if pyodide is not None and numpy is not None:
        shutil.copytree(pyodide, target / "pyodide", dirs_exist_ok=True)
        shutil.copyfile(numpy, target / numpy.name)
        settings |= {"pyodide": "./pyodide/", "numpy": numpy.name}
    (target / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.playground", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pyodide", type=Path, help="the folder of npm's package pyodide")
    parser.add_argument("--numpy", type=Path, help="the folder with NumPy's wheel for Pyodide")
    options = parser.parse_args()
    wheels = sorted(options.numpy.glob("numpy-*wasm32.whl")) if options.numpy else [None]
    write(options.folder, options.pyodide, wheels[-1])
    print(f"{options.folder}/index.html; serve it: python -m http.server -d {options.folder}")


if __name__ == "__main__":
    main()
