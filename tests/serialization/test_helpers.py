"""Storages, archives and the helpers of `torch.serialization` that libraries call."""

from __future__ import annotations

import io
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.support.differential import differential, outcome

FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")


@pytest.mark.parametrize("name", [*FLOAT8, "bool", "int8", "float4_e2m1fn_x2", "bits8", "uint16"])
@differential
def test_tensors_of_every_byte(torch: Any, name: str) -> Any:
    """The storage of a tensor with one dimension and one byte an element was taken for bytes."""
    file = io.BytesIO()
    tensor = torch.arange(4, dtype=torch.uint8).view(getattr(torch, name))
    torch.save({"tensor": tensor, "dtype": tensor.dtype}, file)
    file.seek(0)
    found = torch.load(file)
    return found["tensor"].view(torch.uint8), str(found["tensor"].dtype), str(found["dtype"])


@differential
def test_bytes_are_unsigned(torch: Any) -> Any:
    storages = [torch.tensor([-1, 2], dtype=torch.int8).untyped_storage(), torch.tensor([True]).untyped_storage()]
    return [(each.tolist(), each[0]) for each in storages]


BUFFER = b"\0\1\0\2\1\2\3\4"


@pytest.mark.parametrize(
    "kind", ["Short", "Int", "Float", "Double", "Half", "BFloat16", "ComplexFloat", "Bool", "Char", "Long"]
)
@differential
def test_from_buffer_heeds_the_order_of_bytes(torch: Any, kind: str) -> Any:
    warnings.simplefilter("ignore")  # PyTorch calls typed storages deprecated
    make = getattr(torch, f"{kind}Storage").from_buffer
    return [
        outcome(lambda options=options: make(BUFFER, **options).tolist())
        for options in (
            {"byte_order": "big"},
            {"byte_order": "little"},
            {"byte_order": "native", "count": 1},
            {"byte_order": "big", "offset": 4},
            {"byte_order": "big", "offset": 3},
            {"byte_order": "big", "offset": 9},
            {"byte_order": "big", "count": 9},
            {"byte_order": "other"},
            {"byte_order": "big", "dtype": torch.int8},
            {"byte_order": "big", "device": "cpu"},
            {},
        )
    ]


@differential
def test_from_buffer_without_a_class(torch: Any) -> Any:
    warnings.simplefilter("ignore")
    return (
        torch.UntypedStorage.from_buffer(BUFFER, "big", dtype=torch.int16).tolist(),
        torch.storage.TypedStorage.from_buffer(BUFFER, "big", dtype=torch.int32, device="cpu").tolist(),
        outcome(lambda: torch.UntypedStorage.from_buffer(BUFFER, "big")),
    )


@differential
def test_slices_of_storages_share_memory(torch: Any) -> Any:
    tensor = torch.arange(4, dtype=torch.uint8)
    storage = tensor.untyped_storage()
    part = storage[1:3]
    part[0] = 9
    on_part = torch.empty(0, dtype=torch.uint8).set_(part)
    on_part[1] = 8
    storage[3:] = 7
    return (
        *(tensor, on_part, on_part.storage_offset(), part.nbytes(), part.data_ptr() - storage.data_ptr()),
        *(storage[:0].tolist(), storage[1:100].tolist(), part.resizable()),
        *(outcome(lambda index=index: storage[index]) for index in (slice(None, None, 2), 4, -5, True, 1.5, "a", -1)),
        *(outcome(lambda value=value: storage.__setitem__(0, value)) for value in (300, -1, 1.5)),
        storage.tolist(),
        outcome(lambda: part.resize_(9)),
    )


@differential
def test_typed_storages_have_an_identity(torch: Any) -> Any:
    warnings.simplefilter("ignore")
    tensor = torch.ones(3)
    first, second = tensor.storage(), tensor.storage()
    return first._cdata == second._cdata == tensor.untyped_storage()._cdata, first._cdata != torch.ones(
        3
    ).storage()._cdata


@differential
def test_archives_by_records(torch: Any, tmp_path: Path) -> Any:
    path = str(tmp_path / f"{torch.__name__}.zip")
    writer = torch._C.PyTorchFileWriter(path)
    writer.write_record("folder/text", "hello", 5)
    writer.write_record("bytes", b"abcdef", 3)
    writer.write_record("storage", torch.arange(3, dtype=torch.int16).untyped_storage(), 6)
    errors = [outcome(lambda: writer.write_record("bytes", b"", 0)), outcome(lambda: writer.write_record("x", 1.5, 0))]
    writer.write_end_of_file()
    errors += [outcome(writer.write_end_of_file), outcome(lambda: writer.write_record("late", b"", 0))]
    reader = torch._C.PyTorchFileReader(path)
    numbers = reader.get_storage_from_record("storage", 3, torch.int16)
    offset = reader.get_record_offset("storage")
    errors += [
        outcome(lambda: reader.get_record("none"), "failed locating file none"),
        outcome(lambda: reader.get_storage_from_record("storage", 2, torch.int16), "does not match expected size"),
        outcome(lambda: torch._C.PyTorchFileReader(io.BytesIO(b"garbage"))),
        outcome(lambda: torch._C.PyTorchFileReader(str(tmp_path / "none")), "open file failed because of errno 2"),
        outcome(lambda: torch._C.PyTorchFileWriter(str(tmp_path / "none" / "file")), "does not exist"),
    ]
    return (
        *(reader.get_all_records(), reader.get_record("folder/text"), reader.get_record("bytes")),
        *(reader.has_record("bytes"), reader.has_record("none"), numbers, numbers.untyped_storage().tolist()),
        *(offset % 64, (tmp_path / path).read_bytes()[offset : offset + 6], reader.get_record_size("storage")),
        *(reader.serialization_id() == writer.serialization_id(), sorted(writer.get_all_written_records()), errors),
    )


@differential
def test_objects_in_open_archives(torch: Any) -> Any:
    helpers, file, old = torch.serialization, io.BytesIO(), io.BytesIO()
    with helpers._open_zipfile_writer(file) as writer:
        helpers._save({"weight": torch.ones(2)}, writer, pickle, 2, False)
    file.seek(0)
    with helpers._open_zipfile_reader(file) as reader:
        found = helpers._load(reader, None, pickle)
    helpers._legacy_save([torch.ones(1)], old, pickle, 2)
    old.seek(0)
    return found, torch.load(old), helpers._is_zipfile(old), sorted(writer.get_all_written_records())


@differential
def test_small_helpers(torch: Any, tmp_path: Path) -> Any:
    helpers, file, storage = torch.serialization, io.BytesIO(b"text"), torch.ones(1).untyped_storage()
    (tmp_path / "file").write_bytes(b"x")
    with helpers._open_file_like(tmp_path / "file", "rb") as opened:
        directly = helpers._should_read_directly(opened), helpers._check_seekable(opened), opened.read()
    return (
        *(helpers._is_compressed_file(file), helpers._should_read_directly(file), directly),
        *(helpers._cpu_tag(storage), helpers._meta_tag(storage), helpers._meta_tag(torch.ones(1, device="meta"))),
        *(helpers._cpu_deserialize(storage, "cpu").nbytes(), helpers._cpu_deserialize(storage, "cuda")),
        *(helpers._maybe_decode_ascii(b"x"), helpers._maybe_decode_ascii("y"), helpers.MAGIC_NUMBER),
        *(helpers.PROTOCOL_VERSION, helpers.LONG_SIZE, helpers.INT_SIZE, helpers.SHORT_SIZE),
        *(helpers.STORAGE_KEY_SEPARATOR, len(helpers._package_registry) > 1),
        helpers._get_restore_location("meta")(storage, "cpu").device,
        outcome(lambda: helpers._check_seekable(object())),
    )
