"""What notebooks show of tensors and modules."""

from __future__ import annotations

import re

import pytest

import flambeau as torch
from flambeau import nn


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


def test_names_are_escaped() -> None:
    class Odd(nn.Module):
        def extra_repr(self) -> str:
            return "<script>"

    assert "<script>" not in Odd()._repr_html_()
