"""State that is spread over processes: of optimizers, and in checkpoints."""

from __future__ import annotations

import importlib
import json
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import flambeau
import flambeau.distributed as dist
from flambeau.distributed import checkpoint
from flambeau.distributed.optim import ZeroRedundancyOptimizer
from flambeau.distributed.testing import run_in_threads

from ..support.oracle import pytorch

MINUTES = timedelta(minutes=4)


def model() -> Any:
    made = flambeau.nn.Sequential(flambeau.nn.Linear(4, 6), flambeau.nn.Tanh(), flambeau.nn.Linear(6, 3)).double()
    with flambeau.no_grad():
        for number, each in enumerate(made.parameters()):
            each.copy_(flambeau.randn(each.shape, generator=flambeau.Generator().manual_seed(number)))
    return made


def train(network: Any, optimizer: Any, steps: int, start: int = 0) -> None:
    for step in range(start, start + steps):
        optimizer.zero_grad()
        x = flambeau.randn(5, 4, dtype=flambeau.float64, generator=flambeau.Generator().manual_seed(step))
        network(x).pow(2).sum().backward()
        optimizer.step()


def content(network: Any) -> list[Any]:
    return [each.tolist() for each in network.state_dict().values()]


def test_an_optimizer_in_parts_steps_as_a_whole_one() -> None:
    whole = model()
    reference = flambeau.optim.AdamW(whole.parameters(), 0.02)
    train(whole, reference, 4)
    reference.param_groups[0]["lr"] = 0.01
    train(whole, reference, 3, 4)

    def work(rank: int) -> Any:
        network = model()
        optimizer = ZeroRedundancyOptimizer(network.parameters(), flambeau.optim.AdamW, lr=0.02)
        assert len(optimizer.optim.state_dict()["param_groups"][0]["params"]) < 4
        train(network, optimizer, 4)
        optimizer.consolidate_state_dict(to=0)
        saved = [optimizer.state_dict() if rank == 0 else None]
        if rank:
            with pytest.raises(RuntimeError, match="consolidate"):
                optimizer.state_dict()
        dist.broadcast_object_list(saved, 0)
        again = ZeroRedundancyOptimizer(network.parameters(), flambeau.optim.AdamW, lr=1.0)
        again.load_state_dict(saved[0])
        again.param_groups[0]["lr"] = 0.01
        train(network, again, 3, 4)
        return content(network), saved[0]

    for found, state in run_in_threads(work, 2, MINUTES):
        assert found == content(whole)
        assert sorted(state["state"]) == [0, 1, 2, 3]
        plain = flambeau.optim.AdamW(model().parameters())
        plain.load_state_dict(state)
        assert plain.param_groups[0]["lr"] == 0.02


def test_a_checkpoint_is_read_on_another_number_of_ranks(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"

    def write(rank: int) -> None:
        network = model()
        optimizer = flambeau.optim.Adam(network.parameters(), 0.1)
        train(network, optimizer, 2)
        state = {"model": network.state_dict(), "optimizer": optimizer.state_dict(), "step": 2, "notes": ["a", 1.5]}
        checkpoint.save(state, checkpoint_id=folder)

    run_in_threads(write, 3, MINUTES)
    assert len(list(folder.glob("*.safetensors"))) == 3

    def read(rank: int) -> Any:
        network = model()
        optimizer = flambeau.optim.Adam(network.parameters(), 0.1)
        train(network, optimizer, 1, 90)
        state: Any = {"model": network.state_dict(), "optimizer": optimizer.state_dict(), "step": 0, "notes": None}
        checkpoint.load(state, checkpoint_id=folder)
        optimizer.load_state_dict(state["optimizer"])
        train(network, optimizer, 1, 2)
        return content(network), state["step"], state["notes"]

    expected = model()
    train(expected, flambeau.optim.Adam(expected.parameters(), 0.1), 3)
    assert run_in_threads(read, 2, MINUTES) == [(content(expected), 2, ["a", 1.5])] * 2
    assert read(0) == (content(expected), 2, ["a", 1.5])
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    name = "model.0.weight"
    tensors = flambeau.safetensors.load_file(folder / index["weight_map"][name])
    assert tensors[name].shape == (6, 4)


def test_a_write_that_fails_leaves_the_old_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flambeau.distributed.checkpoint import _folder

    checkpoint.save({"x": flambeau.ones(2)}, checkpoint_id=tmp_path)
    original = _folder.save_file

    def work(rank: int) -> None:
        with pytest.raises(checkpoint.CheckpointException, match="rank 1: OSError: disk full"):
            checkpoint.save({"x": flambeau.zeros(2), "y": flambeau.zeros(1)}, checkpoint_id=tmp_path)

    def fail(tensors: Any, path: Any, metadata: Any) -> None:
        if "00002-of" in str(path):
            raise OSError("disk full")
        original(tensors, path, metadata)

    monkeypatch.setattr(_folder, "save_file", fail)
    run_in_threads(work, 2, MINUTES)
    state = {"x": flambeau.zeros(2)}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state["x"].tolist() == [1, 1]


def test_in_the_background_and_objects_with_state(tmp_path: Path) -> None:
    def work(rank: int) -> None:
        network = model()
        before = content(network)
        future = checkpoint.async_save({"network": network}, checkpoint_id=tmp_path)
        with flambeau.no_grad():
            for each in network.parameters():
                each.zero_()
        dist.all_reduce(flambeau.ones(3))  # beside the collectives of the other thread
        future.result(240)
        checkpoint.load({"network": network}, checkpoint_id=tmp_path)
        assert content(network) == before

    run_in_threads(work, 2, MINUTES)


def shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shown(each) for key, each in value.items()}
    return [shown(each) for each in value] if isinstance(value, list) else getattr(value, "tolist", lambda: value)()


def converted(library: Any, folder: Path) -> list[Any]:
    """A state that went from one file into a folder and back, and one that went into a folder first."""
    formats = importlib.import_module(f"{library.__name__}.distributed.checkpoint.format_utils")
    weight, (file, whole, back, again) = library.arange(6.0).reshape(2, 3), (folder / name for name in "abcd")
    state = {
        "model": {"weight": weight, "with.dots": weight[0].clone()},
        "optimizer": {"state": {0: {"step": library.tensor(1.0), "exp_avg": weight * 2}}, "lr": [0.1], "none": {}},
        "epoch": 3,
        "notes": ["a", weight, (1, 2)],
    }
    library.save(state, file)
    formats.torch_save_to_dcp(file, whole)
    formats.dcp_to_torch_save(whole, back)
    importlib.import_module(f"{library.__name__}.distributed.checkpoint").save(state, checkpoint_id=again, no_dist=True)
    formats.dcp_to_torch_save(again, folder / "e")
    return [shown(library.load(each)) for each in (back, folder / "e")]


def test_one_file_and_folders(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    found = converted(flambeau, tmp_path / "own")
    assert found[0]["optimizer"]["state"] == {"0": {"step": 1.0, "exp_avg": [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]}}
    if pytorch is not None:
        (tmp_path / "theirs").mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's, that nobody else takes part
            assert found == converted(pytorch, tmp_path / "theirs")


def flat_state(library: Any) -> Any:
    """The state of an optimizer in one dictionary, which another optimizer takes over."""
    states = importlib.import_module(f"{library.__name__}.distributed.checkpoint.state_dict")
    options = states.StateDictOptions(flatten_optimizer_state_dict=True)
    found, loaded = [], None
    for rate in (0.1, 0.7):
        layers = library.nn.Sequential(library.nn.Linear(2, 2), library.nn.Linear(2, 1))
        with library.no_grad():
            for each in layers.parameters():
                each.fill_(0.5)
        groups = [{"params": layers[0].parameters(), "lr": rate}, {"params": layers[1].parameters()}]
        optimizer = library.optim.AdamW(groups, lr=2 * rate)
        layers(library.ones(1, 2)).sum().backward()
        optimizer.step()
        if loaded is not None:
            states.set_optimizer_state_dict(layers, optimizer, loaded, options=options)
            optimizer.step()
        loaded = states.get_optimizer_state_dict(layers, optimizer, options=options)
        found += [shown(loaded), [group["lr"] for group in optimizer.param_groups], shown(list(layers.parameters()))]
    return found


def test_a_state_in_one_dictionary() -> None:
    found = flat_state(flambeau)
    assert found[1] == found[4] == [0.1, 0.2]
    if pytorch is not None:
        expected = flat_state(pytorch)
        assert [list(each) for each in (found[0], found[3])] == [list(each) for each in (expected[0], expected[3])]
        assert found[4] == expected[4]
        flambeau.testing.assert_close(found[5], expected[5])


def test_folders_of_numbered_files(tmp_path: Path) -> None:
    """Files as `from_pretrained` reads them, written by several processes, and read with an index or without one."""
    from flambeau.distributed.checkpoint import HuggingFaceStorageReader, HuggingFaceStorageWriter

    state = model().state_dict()
    places = {name: number for number, name in enumerate(state, 1)}

    def work(rank: int) -> None:
        checkpoint.save({**state, "step": 3}, storage_writer=HuggingFaceStorageWriter(tmp_path, places))

    run_in_threads(work, 2, MINUTES)
    expected = {name: f"model-{number:05d}-of-00004.safetensors" for name, number in places.items()}
    index = tmp_path / "model.safetensors.index.json"
    assert json.loads(index.read_text())["weight_map"] == expected
    assert sorted(each.name for each in tmp_path.iterdir()) == [*sorted(expected.values()), index.name]
    for _ in range(2):
        found = {name: flambeau.zeros_like(value) for name, value in state.items()}
        checkpoint.load(found, storage_reader=HuggingFaceStorageReader(tmp_path))
        flambeau.testing.assert_close(found, dict(state), rtol=0, atol=0)
        index.unlink(missing_ok=True)
    checkpoint.save({"x": flambeau.ones(2)}, storage_writer=HuggingFaceStorageWriter(tmp_path / "one"))
    assert flambeau.safetensors.load_file(tmp_path / "one" / "model-00001-of-00001.safetensors")["x"].tolist() == [1, 1]
    with pytest.raises(checkpoint.CheckpointException, match="in which file 'x' is"):
        checkpoint.save({"x": flambeau.ones(2)}, storage_writer=HuggingFaceStorageWriter(tmp_path, places))
    with pytest.raises(checkpoint.CheckpointException, match="no safetensors files"):
        checkpoint.load({"x": flambeau.ones(2)}, storage_reader=HuggingFaceStorageReader(tmp_path / "none"))


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    checkpoint.save({"x": flambeau.ones(2)}, checkpoint_id=tmp_path)
    with pytest.raises(checkpoint.CheckpointException, match=r"Missing key.*other"):
        checkpoint.load({"other": flambeau.ones(1)}, checkpoint_id=tmp_path)
    with pytest.raises(checkpoint.CheckpointException, match=r"x has shape \(2,\).*\(3,\)"):
        checkpoint.load({"x": flambeau.ones(3)}, checkpoint_id=tmp_path)
    with pytest.raises(checkpoint.CheckpointException, match="no checkpoint"):
        checkpoint.load({"x": flambeau.ones(2)}, checkpoint_id=tmp_path / "none")
    with pytest.raises(ValueError, match="needs a folder"):
        checkpoint.save({})
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "model.safetensors.index.json").write_text('{"weight_map": {}}')
    (tmp_path / "theirs" / "model-00001-of-00002.safetensors").write_text("theirs")
    with pytest.raises(checkpoint.CheckpointException, match="another folder"):
        checkpoint.save({"x": flambeau.ones(2)}, checkpoint_id=tmp_path / "theirs")
    assert (tmp_path / "theirs" / "model-00001-of-00002.safetensors").read_text() == "theirs"


def test_states_by_names(tmp_path: Path) -> None:
    from flambeau.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from flambeau.nn.parallel import DistributedDataParallel

    def work(rank: int) -> None:
        wrapped = DistributedDataParallel(model())
        optimizer = flambeau.optim.Adam(wrapped.parameters(), 0.1)
        train(wrapped, optimizer, 2)
        first, second = get_state_dict(wrapped, optimizer)
        assert sorted(first) == ["0.bias", "0.weight", "2.bias", "2.weight"]
        assert sorted(second["state"]) == sorted(first)
        checkpoint.save({"model": first, "optimizer": second}, checkpoint_id=tmp_path)
        plain = model()
        other = flambeau.optim.Adam(plain.parameters(), 0.3)
        train(plain, other, 1, 70)
        first, second = get_state_dict(plain, other)
        state = {"model": first, "optimizer": second}
        checkpoint.load(state, checkpoint_id=tmp_path)
        set_state_dict(plain, other, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        train(plain, other, 1, 2)
        train(wrapped, optimizer, 1, 2)
        assert content(plain) == content(wrapped.module)

    run_in_threads(work, 2, MINUTES)
