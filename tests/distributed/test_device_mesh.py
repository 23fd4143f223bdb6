"""Meshes of processes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import flambeau
import flambeau.distributed as dist
from flambeau.distributed.testing import run_in_threads

MINUTES = timedelta(minutes=4)


def test_rows_and_columns() -> None:
    def work(rank: int) -> Any:
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        row, column = flambeau.tensor([float(rank)]), flambeau.tensor([float(rank)])
        dist.all_reduce(row, group=mesh.get_group("tp"))
        dist.all_reduce(column, group=mesh["dp"].get_group())
        flat = mesh["dp", "tp"]._flatten()
        everyone = flambeau.tensor([float(rank)])
        dist.all_reduce(everyone, group=flat.get_group())
        assert (mesh.shape, mesh.ndim, mesh.size(), mesh.size(1)) == ((2, 2), 2, 4, 2)
        assert mesh.mesh.tolist() == [[0, 1], [2, 3]]
        assert mesh.get_coordinate() == [rank // 2, rank % 2]
        assert (mesh.get_local_rank("dp"), mesh.get_local_rank(1)) == (rank // 2, rank % 2)
        assert mesh["tp"] is mesh["tp"]
        assert mesh["tp"].mesh.tolist() == [2 * (rank // 2), 2 * (rank // 2) + 1]
        assert mesh == dist.DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("dp", "tp"))
        with pytest.raises(RuntimeError, match="mesh_dim"):
            mesh.get_group()
        with pytest.raises(KeyError, match="pp"):
            mesh["pp"]
        return row.item(), column.item(), everyone.item()

    assert run_in_threads(work, 4, MINUTES) == [(1, 2, 6), (1, 4, 6), (5, 2, 6), (5, 4, 6)]


def test_what_is_refused() -> None:
    def work(rank: int) -> None:
        with pytest.raises(RuntimeError, match="there are 2"):
            dist.init_device_mesh("cpu", (2, 2))
        with pytest.raises(RuntimeError, match="same length"):
            dist.init_device_mesh("cpu", (2,), mesh_dim_names=("a", "b"))
        with pytest.raises(RuntimeError, match="index"):
            dist.init_device_mesh("cpu:0", (2,))

    run_in_threads(work, 2, MINUTES)
