"""What notebooks show of tensors, modules, graphs and reports."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable
from html import unescape
from types import SimpleNamespace
from typing import TextIO
from xml.etree import ElementTree

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._core.text.html import framed
from flambeau.utils.dashboard import Dashboard


def cells(html: str | None) -> list[str]:
    """The text of the cells of a table."""
    assert html is not None
    return re.findall(r"<td[^>]*>(.*?)</td>", html)


def test_values_stand_in_a_table_and_facts_below() -> None:
    html = torch.tensor([[1.5, -2.0], [0.0, 4.0]], requires_grad=True)._repr_html_()
    assert cells(html) == ["1.5", "-2", "0", "4"]
    assert html is not None
    assert "shape (2, 2) · float32 · cpu · requires_grad · min -2, mean 0.875, max 4" in html


def test_nan_and_infinity_are_marked_and_counted() -> None:
    html = torch.tensor([1.0, float("nan"), float("inf"), float("-inf")])._repr_html_()
    assert cells(html) == ["1", "nan", "inf", "-inf"]
    assert html is not None
    assert "<b>1 NaN</b>" in html
    assert "<b>2 infinite</b>" in html


def test_large_tensors_show_their_ends() -> None:
    html = torch.arange(10000).view(100, 100)._repr_html_()
    shown = cells(html)
    assert len(shown) == 13 * 17
    assert shown[0] == "0"
    assert shown[-1] == "9999"
    assert "⋯" in shown


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(()),
        torch.zeros(0, 3),
        torch.ones(2, 3, 4, 5),
        torch.tensor([True, False]),
        torch.tensor([1 + 2j]),
        torch.ones(3, dtype=torch.bfloat16),
        torch.ones(3, dtype=torch.float8_e4m3fn),
        torch.tensor([2**62, -(2**62)]),
        torch.tensor([255], dtype=torch.uint8),
    ],
    ids=str,
)
def test_every_dtype_and_shape_has_a_form(tensor: torch.Tensor) -> None:
    html = tensor._repr_html_()
    assert html is not None
    assert f"shape {tuple(tensor.shape)}" in html


def test_tensors_without_a_table_are_shown_as_text() -> None:
    assert torch.empty(3, device="meta")._repr_html_() is None
    assert torch.eye(3).to_sparse()._repr_html_() is None


def test_modules_are_trees_with_counts() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2, bias=False)))
    model[0].weight.requires_grad = False
    html = model._repr_html_()
    assert html.count("<details") == 2
    assert "24 parameters, 12 frozen" in html
    assert "in_features=3, out_features=4, bias=True" in html
    assert "<code></code>" not in html


def test_names_are_escaped() -> None:
    class Odd(nn.Module):
        def extra_repr(self) -> str:
            return "<script>"

    assert "<script>" not in Odd()._repr_html_()


def test_summaries_are_tables() -> None:
    html = torch.summary(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), input_size=(2, 4))._repr_html_()
    assert "Linear" in html
    assert "[2, 3]" in html
    assert "15 parameters, 15 of them trained" in html
    assert html.count("<tr>") == 4


def test_profiles_and_explanations_show_their_pages() -> None:
    profile = torch.profiler.profile()
    assert profile._repr_html_() is None
    with profile:
        torch.ones(3).exp()
    html = profile._repr_html_()
    assert html is not None
    assert html.startswith("<iframe srcdoc=")
    assert "exp" in html
    double = torch.compile(lambda x: x * 2)
    for _ in range(4):
        double(torch.ones(3))
    assert torch.compiler.explain(double)._repr_html_().startswith("<iframe srcdoc=")


def test_pages_in_frames_end_where_the_frame_does() -> None:
    inner = re.fullmatch(r'<iframe srcdoc="([^"]*)" style="[^"]*"></iframe>', framed('<p title="a">&</p>'))
    assert inner is not None
    assert unescape(inner[1]) == '<p title="a">&</p>'


def test_graphs_are_pictures() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    y = x.exp()
    loss = (y * y.sin()).sum()
    assert loss.grad_fn is not None
    svg = loss.grad_fn._repr_svg_()
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert sorted(labels) == ["Exp", "Mul", "Sin", "Sum", "leaf (2, 3)"]
    assert svg.count("<path") == 5
    heights = {label: float(y) for y, label in re.findall(r'<text x="\d+" y="([\d.]+)"[^>]*>([^<]*)', svg)}
    assert heights["Sum"] < heights["Mul"] < heights["Sin"] < heights["Exp"] < heights["leaf (2, 3)"]
    ElementTree.fromstring(svg)


def test_large_graphs_show_what_is_nearest() -> None:
    x = torch.ones(1, requires_grad=True)
    for _ in range(400):
        x = x + 1
    assert x.grad_fn is not None
    svg = x.grad_fn._repr_svg_()
    assert svg.count("<rect") == 150
    assert "nearest to the result" in svg


@pytest.mark.parametrize("widgets", [SimpleNamespace(), None], ids=["widgets", "text"])
def test_epochs_have_a_bar_in_notebooks(widgets: SimpleNamespace | None, monkeypatch: pytest.MonkeyPatch) -> None:
    bars: list[tuple[int | None, str]] = []
    package = "tqdm" if widgets is None else "tqdm.notebook"

    def bar(batches: Iterable[int], total: int | None, desc: str, leave: bool, file: TextIO) -> Iterable[int]:
        assert file is sys.stdout
        bars.append((total, desc))
        return batches

    monkeypatch.setitem(sys.modules, "ipywidgets", widgets)
    monkeypatch.setitem(sys.modules, package, SimpleNamespace(tqdm=bar))
    with Dashboard(epochs=1, stream=io.StringIO()) as board:
        for _ in board.epochs():
            assert list(board.steps(range(3))) == [0, 1, 2]
            monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
            assert list(board.steps(range(3))) == [0, 1, 2]
            monkeypatch.setitem(sys.modules, package, None)
            assert list(board.steps(range(3))) == [0, 1, 2]
    assert bars == [(3, "epoch 1/1")]
