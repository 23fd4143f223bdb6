"""Files of both libraries, read by the other: values, dtypes, strides, sharing, keys and types are equal."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau
from flambeau.serialization import load, save

from .objects import BUILDS, picture

FORMATS = {"zip": {}, "stacked": {"_use_new_zipfile_serialization": False}}

UNREADABLE = {("every_dtype", "stacked"), ("storages", "stacked")}
"""PyTorch cannot read untyped storages in this format, not even its own."""


def saved(writer: Any, obj: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    writer.save(obj, file, **options)
    file.seek(0)
    return file


def pytorch_load(file: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of complex32
        return pytorch.load(file, weights_only=False, **options)


@pytest.mark.parametrize("container", FORMATS)
@pytest.mark.parametrize("name", BUILDS)
def test_pytorch_writes_flambeau_reads(name: str, container: str) -> None:
    original = BUILDS[name](pytorch)
    file = saved(pytorch, original, **FORMATS[container])
    for weights_only in (True, False):
        file.seek(0)
        assert picture(load(file, weights_only=weights_only)) == picture(original)


@pytest.mark.parametrize("container", FORMATS)
@pytest.mark.parametrize("name", BUILDS)
def test_flambeau_writes_both_read(name: str, container: str) -> None:
    original = BUILDS[name](flambeau)
    assert picture(original) == picture(BUILDS[name](pytorch))
    file = saved(flambeau, original, **FORMATS[container])
    if (name, container) not in UNREADABLE:
        assert picture(pytorch_load(file)) == picture(original)
    for weights_only in (True, False):
        file.seek(0)
        assert picture(load(file, weights_only=weights_only)) == picture(original)


@pytest.mark.parametrize("name", ["every_dtype", "views", "shared", "parameters", "optimizer_state", "without_data"])
def test_pytorch_reads_safely_what_flambeau_writes(name: str) -> None:
    original = BUILDS[name](flambeau)
    assert picture(pytorch.load(saved(flambeau, original), weights_only=True)) == picture(original)


@pytest.mark.parametrize("name", BUILDS)
def test_there_and_back(name: str) -> None:
    original = BUILDS[name](pytorch)
    middle = load(saved(pytorch, original))
    assert picture(pytorch_load(saved(flambeau, middle))) == picture(original)


@pytest.mark.parametrize("protocol", range(1, 6))
def test_every_pickle_protocol(protocol: int) -> None:
    for name in ("containers", "shared", "parameters", "torch_values", "arrays"):
        for writer in (pytorch, flambeau):
            original = BUILDS[name](writer)
            file = saved(writer, original, pickle_protocol=protocol)
            assert picture(load(file)) == picture(original), name
            file.seek(0)
            assert picture(pytorch_load(file)) == picture(original), name


def test_optimizers_of_pytorch() -> None:
    for cls in (pytorch.optim.SGD, pytorch.optim.Adam, pytorch.optim.AdamW, pytorch.optim.RMSprop, pytorch.optim.LBFGS):
        weights = [pytorch.nn.Parameter(pytorch.arange(4.0)), pytorch.nn.Parameter(pytorch.ones(2, 2))]
        optimizer = cls(weights, lr=0.1, **({"momentum": 0.9} if cls is pytorch.optim.SGD else {}))

        def loss(weights: Any = weights, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            total = sum((weight**2).sum() for weight in weights)
            total.backward()
            return total

        optimizer.step(loss)
        schedule = pytorch.optim.lr_scheduler.StepLR(optimizer, 3)
        checkpoint = {"optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(), "epoch": 3}
        assert picture(load(saved(pytorch, checkpoint))) == picture(checkpoint)


def test_conjugated_and_negated_tensors() -> None:
    number = pytorch.tensor([1 + 2j, 3 - 4j])
    for original in (number.conj(), number.conj().imag):
        for options in FORMATS.values():
            assert load(saved(pytorch, original, **options)).tolist() == original.tolist()


def test_arrays_of_the_other_byte_order() -> None:
    array = np.arange(3, dtype=np.dtype("i4").newbyteorder())
    for protocol in (2, 5):
        assert load(saved(pytorch, array, pickle_protocol=protocol)).tolist() == [0, 1, 2]


def test_one_storage_under_two_dtypes() -> None:
    number = flambeau.ones(3, dtype=flambeau.complex64)
    original = [number, flambeau.view_as_real(number), number.untyped_storage()]
    file = saved(flambeau, original)
    assert picture(load(file)) == picture(original)
    file.seek(0)
    read = pytorch_load(file)
    assert picture(read[:2]) == picture(original[:2])


def test_generator_continues() -> None:
    for writer, reader in ((pytorch, flambeau), (flambeau, pytorch), (flambeau, flambeau)):
        generator = writer.Generator().manual_seed(5)
        writer.rand(3, generator=generator)
        copy = reader.load(saved(writer, {"generator": generator}), weights_only=False)["generator"]
        assert reader.rand(4, generator=copy).tolist() == writer.rand(4, generator=generator).tolist()
    assert isinstance(load(saved(pytorch, pytorch.Generator())), flambeau.Generator)


def test_named_results() -> None:
    for writer, reader in ((pytorch, flambeau), (flambeau, pytorch), (flambeau, flambeau)):
        result = writer.tensor([[1.0, 3.0], [2.0, 0.0]]).max(0)
        read = reader.load(saved(writer, result), weights_only=False)
        assert (read.values.tolist(), read.indices.tolist()) == ([2.0, 3.0], [1, 0])


def test_functions_by_name() -> None:
    for writer, reader in ((pytorch, flambeau), (flambeau, pytorch), (flambeau, flambeau)):
        functions = [writer.relu, writer.nn.functional.gelu, writer.nn.functional.relu]
        read = reader.load(saved(writer, functions), weights_only=False)
        assert [each(reader.ones(1)).item() for each in read] == [each(writer.ones(1)).item() for each in functions]


def test_alignment_and_records(tmp_path: Path) -> None:
    import zipfile

    save({"a": flambeau.ones(3), "b": flambeau.ones(70)}, tmp_path / "model.pt")
    content = (tmp_path / "model.pt").read_bytes()
    with zipfile.ZipFile(tmp_path / "model.pt") as archive:
        assert archive.testzip() is None
        assert {"model/data.pkl", "model/version", "model/byteorder", "model/data/0", "model/data/1"} <= set(
            archive.namelist()
        )
        ones = np.ones(70, np.float32).tobytes()
        assert content.index(ones) % 64 == 0


def test_large_counts_and_zip64(monkeypatch: pytest.MonkeyPatch) -> None:
    from flambeau._serialization import archive

    monkeypatch.setattr(archive, "_LIMIT_32", 300)
    original = {str(index): flambeau.full((100,), float(index)) for index in range(3)}
    file = saved(flambeau, original)
    assert picture(load(file)) == picture(original)
    file.seek(0)
    assert picture(pytorch_load(file)) == picture(original)


def test_several_objects_in_one_stream() -> None:
    file = io.BytesIO()
    for index in range(3):
        pytorch.save(pytorch.full((2,), float(index)), file, _use_new_zipfile_serialization=False)
    flambeau.save("last", file)
    file.seek(0)
    assert [load(file).tolist() for _ in range(3)] == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    assert load(file) == "last"


def test_tensor_hooks_stay_behind() -> None:
    tensor = flambeau.ones(2, requires_grad=True)
    tensor.register_hook(lambda grad: grad)
    with pytest.warns(UserWarning, match="will not be serialized"):
        file = saved(flambeau, tensor)
    assert load(file).requires_grad
