"""The playground: its examples and its recorder here, then the page itself in a browser, by clicks.

The page needs Pyodide and NumPy for WebAssembly: `make browser` runs these tests with both.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.support.chromium import BROWSER, Chromium
from tools import playground as tool

PYODIDE = os.environ.get("FLAMBEAU_BROWSER_PYODIDE")
WHEELS = os.environ.get("FLAMBEAU_BROWSER_WHEELS")
SCREENSHOTS = os.environ.get("FLAMBEAU_BROWSER_SCREENSHOTS")


@pytest.fixture(scope="module")
def python_half() -> Any:
    spec = importlib.util.spec_from_file_location("playground", tool.ROOT / "docs" / "_playground" / "playground.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("example", tool.examples(), ids=lambda example: example["title"])
def test_an_example_of_the_documentation_runs(example: dict[str, str], python_half: Any) -> None:
    assert "Traceback" not in python_half.run(example["code"])


def test_the_last_expression_and_errors_are_shown(python_half: Any) -> None:
    assert python_half.run("import flambeau as torch\ntorch.arange(3)") == "tensor([0, 1, 2])\n"
    assert "ZeroDivisionError" in python_half.run("1 / 0")


def test_backward_is_recorded_node_by_node(python_half: Any) -> None:
    result = json.loads(python_half.backward_steps(tool.GRAPH))
    steps = result["steps"]
    names = [step["name"] for step in steps]
    assert names[:3] == ["MeanBackward0", "PowBackward0", "SubBackward0"]
    assert names.count("AccumulateGrad") == 2
    assert result["svg"].count("<rect") == len(steps)
    assert sorted(step["box"] for step in steps) == list(range(len(steps)))
    tanh = next(step for step in steps if step["name"] == "TanhBackward0")
    assert "flambeau/_ops/pointwise/" in tanh["source"]
    assert "grad" in tanh["source"]
    assert tanh["arrives"]
    assert tanh["leaves"]


def test_a_program_without_loss_is_an_error_that_is_shown(python_half: Any) -> None:
    assert "KeyError: 'loss'" in json.loads(python_half.backward_steps("x = 1"))["error"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map: ClassVar[dict[str, str]] = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
    }

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    if BROWSER is None or PYODIDE is None or WHEELS is None:
        pytest.skip("needs Chromium, Pyodide and NumPy for WebAssembly: make browser")
    folder = tmp_path_factory.mktemp("playground")
    tool.write(folder, Path(PYODIDE), max(Path(WHEELS).glob("numpy-*wasm32.whl")))
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Chromium() as browser:
            browser.open(f"http://127.0.0.1:{server.server_address[1]}/index.html")
            browser.wait("!document.getElementById('run').disabled", 240)
            yield browser
        server.shutdown()


def shot(page: Chromium, name: str) -> None:
    if SCREENSHOTS is not None:
        page.screenshot(Path(SCREENSHOTS) / f"{name}.png")


def test_in_the_page_every_example_runs(page: Chromium) -> None:
    for number, example in enumerate(tool.examples()):
        page.value(f"document.getElementById('examples').selectedIndex = {number}; examples.onchange()")
        page.click("#run")
        page.wait(f"document.getElementById('output').dataset.runs == {number + 1}", 240)
        output = page.value("document.getElementById('output').textContent")
        assert "Traceback" not in output, (example["title"], output)
    page.value("document.getElementById('code').value = 'import flambeau as torch\\ntorch.arange(3) * 2'")
    page.click("#run")
    page.wait("document.getElementById('output').textContent.includes('tensor([0, 2, 4])')", 60)
    shot(page, "example")


def test_in_the_page_backward_is_stepped(page: Chromium) -> None:
    page.click("#record")
    page.wait("document.querySelectorAll('#graph rect').length > 5", 60)
    nodes = page.value("document.querySelectorAll('#graph rect').length")
    for number in range(1, nodes + 1):
        page.click("#next")
        assert page.value("document.getElementById('step').textContent").startswith(f"{number} of {nodes}: ")
        assert page.value("document.querySelectorAll('#graph rect.now').length") == 1
        if number == nodes // 2:
            shot(page, "stepped")
    assert page.value("document.getElementById('next').disabled")
    assert page.value("document.querySelectorAll('#graph rect.done').length") == nodes - 1


def test_in_the_page_a_network_learns_the_digits(page: Chromium) -> None:
    page.click("#train")
    page.wait("document.getElementById('accuracy').dataset.done == 'yes'", 580)
    text = page.value("document.getElementById('accuracy').textContent")
    assert float(text.split(",")[-1].split("%")[0]) > 75, text
    assert len(page.value("document.querySelector('#curve polyline').getAttribute('points')").split()) == tool.STEPS
    shot(page, "trained")
    assert page.console == []
