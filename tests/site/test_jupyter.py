"""What JupyterLab shows in a real browser: tensors, modules, graphs, summaries, profiles, compiled programs, errors."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .test_browser import BROWSER

ROOT = Path(__file__).parents[2]
TOKEN = "a-word-for-this-test"
CELLS = {
    "tensor": "import flambeau as torch\nx = torch.ones(2, 3); x[0, 1] = float('nan'); x",
    "module": "net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())\nnet",
    "graph": "net(torch.ones(2, 3)).sum().grad_fn",
    "summary": "torch.summary(net, input_size=(2, 3))",
    "profile": "with torch.profiler.profile(profile_memory=True) as prof:\n    net(torch.ones(2, 3))\nprof",
    "explain": "f = torch.compile(lambda x: x * 2)\nfor _ in range(4): f(torch.ones(3))\ntorch.compiler.explain(f)",
    "progress": "from flambeau.utils.dashboard import Dashboard\nwith Dashboard(epochs=1) as board:\n"
    "    for _ in board.epochs():\n        for batch in board.steps([3, 1]): board.log(loss=batch)",
    "error": "net(torch.ones(2, 4))",
}

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no browser is installed"),
    pytest.mark.skipif(importlib.util.find_spec("jupyterlab") is None, reason="JupyterLab is not installed"),
]


def notebook() -> dict[str, Any]:
    """A notebook with a cell for each thing to show."""
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "id": name, "metadata": {}, "source": source, "outputs": [], "execution_count": None}
        for name, source in CELLS.items()
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a JupyterLab that shows `folder`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [f"--port={port}", "--ip=127.0.0.1", "--no-browser", "--allow-root", f"--IdentityProvider.token={TOKEN}"]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyter", "lab", *options],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(address)
            yield address
        finally:
            server.terminate()
            server.wait(timeout=60)


def _wait_for(address: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{address}/api", timeout=5).close()
            return
        time.sleep(0.5)
    raise TimeoutError(f"{address} does not answer")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The notebook after all of its cells have run."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "shown.ipynb").write_text(json.dumps(notebook()), encoding="utf-8")
    with served(folder) as address, playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1300, "height": 4000})  # cells outside of the window are not drawn
        page.set_default_timeout(120_000)
        page.goto(f"{address}/lab/tree/shown.ipynb?reset&token={TOKEN}")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        page.wait_for_selector("text=Python 3 (ipykernel) | Idle")
        page.click("li.lm-MenuBar-item:has-text('Run')")
        page.click("li.lm-Menu-item:has-text('Run All Cells')")
        page.wait_for_selector(f".jp-InputPrompt:has-text('[{len(CELLS)}]:')")
        yield page
        browser.close()


def output(page: Any, name: str) -> Any:
    """The output area of the cell of that name."""
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth(list(CELLS).index(name))
    return cell.locator(".jp-Cell-outputArea")


def test_tensors_are_heat_maps(page: Any) -> None:
    shown = output(page, "tensor")
    assert shown.locator("td").count() == 6
    marked = shown.locator("td").nth(1)
    assert marked.inner_text() == "nan"
    assert marked.evaluate("each => getComputedStyle(each).backgroundColor") == "rgb(194, 37, 92)"
    rows = shown.locator("tr").evaluate_all("all => all.map(each => getComputedStyle(each).backgroundColor)")
    assert set(rows) == {"rgba(0, 0, 0, 0)"}, "stripes of the notebook change the colours"
    assert "shape (2, 3) · float32 · cpu" in shown.inner_text()


def test_modules_unfold(page: Any) -> None:
    shown = output(page, "module")
    assert "8 parameters" in shown.inner_text()
    assert shown.locator("text=in_features=3").is_visible()
    shown.locator("summary").first.click()
    assert not shown.locator("text=in_features=3").is_visible()


def test_graphs_are_pictures(page: Any) -> None:
    """As an element of the page, or as an image, which has no height where its text is not well formed."""
    picture = output(page, "graph").locator("svg, img").first
    assert picture.bounding_box()["height"] > 100


def test_summaries_are_tables(page: Any) -> None:
    assert output(page, "summary").locator("tr").count() == 4


@pytest.mark.parametrize(("name", "text"), [("profile", "Memory of tensors"), ("explain", "1 program")])
def test_pages_are_shown_in_their_frames(page: Any, name: str, text: str) -> None:
    frame = output(page, name).frame_locator("iframe")
    frame.locator(f"text={text}").first.wait_for()


def test_progress_leaves_nothing_red(page: Any) -> None:
    shown = output(page, "progress")
    assert "epoch 1/1  loss 2" in shown.inner_text()
    assert shown.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count() == 0


def test_errors_name_the_cell_and_the_cause_alone(page: Any) -> None:
    text = output(page, "error").inner_text()
    assert "mat1 and mat2 shapes cannot be multiplied (2x4 and 3x2)" in text
    assert text.count("File ") == 1
