"""Enumerations and records of `distributed`, beside PyTorch's."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.differential import differential


def part(torch: Any, path: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.distributed.{path}")


@differential
def test_reductions_in_words(torch: Any) -> Any:
    op = part(torch, "distributed_c10d").ReduceOp
    members = [op.SUM, op.AVG, op.PRODUCT, op.MIN, op.MAX, op.BAND, op.BOR, op.BXOR, op.PREMUL_SUM]
    return [(str(each), repr(each), int(each), each.name, each == op.SUM, each == 1) for each in members]


@differential
def test_enumerations_of_checkpoints(torch: Any) -> Any:
    formats = part(torch, "checkpoint.filesystem").SerializationFormat
    writers = part(torch, "checkpoint.state_dict_saver").AsyncCheckpointerType
    return [(str(each), each.value) for kind in (formats, writers) for each in kind]


def test_how_checkpoints_are_written(tmp_path: Path) -> None:
    import flambeau
    from flambeau.distributed.checkpoint.filesystem import FileSystemWriter, SerializationFormat
    from flambeau.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType, async_save, save

    for each in SerializationFormat:
        save({"x": flambeau.ones(1)}, storage_writer=FileSystemWriter(tmp_path / each.value, serialization_format=each))
        (file,) = (tmp_path / each.value).glob("*.safetensors")
        assert flambeau.safetensors.load_file(file)["x"].tolist() == [1]
    with pytest.raises(NotImplementedError, match="thread"):
        async_save({"x": flambeau.ones(1)}, checkpoint_id=tmp_path, async_checkpointer_type=AsyncCheckpointerType.PROCESS)  # noqa: E501  # fmt: skip
    assert not list(tmp_path.glob("*.safetensors"))


@pytest.mark.parametrize("content", [None, "text", {"message": "text", "extraInfo": {"timestamp": "17"}}])
def test_failures_of_processes(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "error.json"
    if content is not None:
        path.write_text(json.dumps({"message": content, "timestamp": 12}), encoding="utf-8")
    _compare_failures(path=path, dated=content is not None)


@differential
def _compare_failures(torch: Any, path: Path, dated: bool) -> Any:
    make = part(torch, "elastic.multiprocessing.errors").ProcessFailure
    found = make(1, 4321, -9, str(path))
    words = found.message, found.error_file, found.signal_name(), found.error_file_data
    return (*words, found.timestamp if dated else None)


def test_the_error_of_a_run_has_the_failures(tmp_path: Path) -> None:
    from flambeau.distributed import run
    from flambeau.distributed.elastic.multiprocessing.errors import ChildFailedError

    program = tmp_path / "program.py"
    program.write_text("raise ValueError('nothing works')\n", encoding="utf-8")
    with pytest.raises(ChildFailedError, match="nothing works") as caught:
        run.run(run.parse_args(["--nproc-per-node=1", "--standalone", f"--log-dir={tmp_path}", str(program)]))
    rank, failure = caught.value.get_first_failure()
    assert (rank, failure.local_rank, failure.exitcode) == (0, 0, 1)
    assert "ValueError: nothing works" in failure.message
