"""Runs the suite under Pyodide in node, then in headless Chromium: `make browser`.

python -m tests.browser --pyodide node_modules/pyodide --numpy ../shared/browser
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any, ClassVar

from tests.support.chromium import BROWSER, Chromium

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
LONGEST = 1200
"""Seconds for the suite in either."""
NUMPY = os.environ.get("FLAMBEAU_BROWSER_WHEELS", "../shared/browser")


def packed(target: Path) -> None:
    """Write the package and the suite into one archive."""
    support = [ROOT / "tests" / "support" / name for name in ("__init__.py", "small_programs.py")]
    files = [*(ROOT / "flambeau").rglob("*"), *HERE.glob("*.py"), ROOT / "tests" / "__init__.py", *support]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(files):
            if path.is_file() and path.suffix not in (".pyc", ".pyi"):
                archive.write(path, path.relative_to(ROOT))


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves Pyodide, the suite's files and its page, each under its own prefix."""

    folders: ClassVar[dict[str, Path]] = {}
    extensions_map: ClassVar[dict[str, str]] = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
    }

    def translate_path(self, path: str) -> str:
        prefix, _, name = path.partition("?")[0].removeprefix("/").partition("/")
        return str(self.folders.get(prefix, HERE / "not there") / name)  # a browser asks for an icon, too

    def log_message(self, format: str, *args: object) -> None:
        pass


def in_node(pyodide: Path, files: Path) -> dict[str, Any]:
    """The suite's result in node."""
    command = ["node", str(HERE / "node.mjs"), str(pyodide), str(files)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST)
    except subprocess.TimeoutExpired as error:
        last = (error.stdout or b"").decode().splitlines()[-1:]
        raise SystemExit(f"node did not end within {LONGEST} seconds; its last line: {last}") from None
    found = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
    if not found:
        raise SystemExit(f"node gave no result:\n{run.stdout[-2000:]}\n{run.stderr[-4000:]}")
    return json.loads(found[0].removeprefix("RESULT "))  # type: ignore[no-any-return]


def in_chromium(pyodide: Path, files: Path) -> dict[str, Any]:
    """The suite's result in a headless browser."""
    Handler.folders = {"pyodide": pyodide, "files": files, "suite": HERE}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Chromium() as browser:
            browser.open(f"http://127.0.0.1:{server.server_address[1]}/suite/page.html")
            browser.wait("document.title != 'waiting'", LONGEST)
            text = browser.value("document.getElementById('result').textContent")
        server.shutdown()
    if not text.startswith("{"):
        raise SystemExit(f"the page failed: {text}")
    return json.loads(text)  # type: ignore[no-any-return]


def main() -> int:
    """Record, pack, run in both; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.browser", description=__doc__)
    parser.add_argument("--pyodide", type=Path, required=True, help="the folder of npm's package pyodide")
    parser.add_argument("--numpy", type=Path, default=ROOT / NUMPY, help="the folder with NumPy's wheel for Pyodide")
    parser.add_argument("--only", choices=("node", "chromium"), help="run in one of the two")
    options = parser.parse_args()
    wheels = sorted(options.numpy.glob("numpy-*wasm32.whl"))
    if not wheels:
        parser.error(f"no NumPy wheel for WebAssembly in {options.numpy}: set FLAMBEAU_BROWSER_WHEELS")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder)
        subprocess.run([sys.executable, "-m", "tests.browser.recording", str(files / "records.pickle")], check=True)
        packed(files / "package.zip")
        shutil.copyfile(wheels[-1], files / "numpy.whl")
        for name, run in {"node": in_node, "chromium": in_chromium}.items():
            if options.only not in (None, name):
                continue
            if name == "chromium" and BROWSER is None:
                print("chromium: not installed, nothing was run")
                continue
            result = run(options.pyodide.resolve(), files)
            failures = result.pop("failures")
            total = sum(result["counts"].values())
            print(f"{name}: {total - len(failures)} of {total} passed; {result}")
            print("\n".join(failures))
            failed = failed or bool(failures)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
