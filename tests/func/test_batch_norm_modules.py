"""Batch normalizations without running statistics."""

from __future__ import annotations

from typing import Any

from tests.support.differential import differential


@differential
def test_replace_all_batch_norm_modules(torch: Any) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2), torch.nn.BatchNorm1d(2, affine=False))
    result = torch.func.replace_all_batch_norm_modules_(model)
    x = torch.arange(12.0).reshape(4, 3)
    return (
        result is model,
        [each.track_running_stats for each in model[1:]],
        model[1].running_mean,
        list(model.state_dict()),
        model.eval()[1:](x[:, :2]),
    )
