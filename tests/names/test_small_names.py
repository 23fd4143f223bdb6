"""Names that few programs use, beside PyTorch's."""

from __future__ import annotations

import importlib
import io
import types
from pathlib import Path
from typing import Any

import numpy
import pytest

import flambeau
from tests.support.differential import differential, outcome, warned


@differential
def test_rare_functions_of_tensors(torch: Any) -> Any:
    values = torch.tensor([3, 1, 3, 2])
    batch = torch.arange(24.0).reshape(4, 3, 2) ** 1.5
    mean, variance = torch.zeros(3), torch.ones(3)
    matrix = torch.arange(6.0).reshape(2, 3)
    return (
        torch._softmax(matrix, 1, False),
        torch._softmax(matrix.half(), 1, False),
        outcome(lambda: torch._softmax(matrix, 1, True), "half to float conversion is not supported on CPU"),
        torch._unique2(values, True, True, True),
        torch._unique2(values),
        torch.batch_norm_update_stats(batch, mean, variance, 0.1),
        (mean, variance),
        torch._lazy_clone(matrix),
        matrix._lazy_clone(),
    )


def test_tensors_of_files(tmp_path: Path) -> None:
    @differential
    def scenario(torch: Any) -> Any:
        path = tmp_path / f"{torch.__name__}.bin"
        numpy.arange(4, dtype=numpy.int32).tofile(path)
        shared = torch.from_file(str(path), shared=True, size=4, dtype=torch.int32)
        shared[0] = 7
        private = torch.from_file(str(path), size=2, dtype=torch.int32)
        private[1] = 9
        return shared, private, numpy.fromfile(path, dtype=numpy.int32)

    scenario()


@differential
def test_names_of_saving(torch: Any) -> Any:
    saving = torch.serialization
    module = types.ModuleType("module")
    vars(module)["__version__"] = "1.2.3"
    odd = types.ModuleType("odd")
    vars(odd)["__version__"] = "x.y"
    with saving.mkdtemp() as folder:
        was_there = Path(folder).is_dir()
    return (
        (was_there, Path(folder).exists()),
        saving.check_module_version_greater_or_equal(module, (1, 2, 0)),
        saving.check_module_version_greater_or_equal(module, (2, 0)),
        outcome(lambda: saving.check_module_version_greater_or_equal(odd, (1, 0)), "version string is malformed"),
        warned(
            lambda: saving.check_module_version_greater_or_equal(odd, (1, 0), error_if_malformed=False),
            "continuing assuming that requirement is met",
        ),
        saving.normalize_storage_type(torch.FloatStorage) is torch.FloatStorage,
        outcome(lambda: saving.validate_hpu_device("hpu"), "The HPU device module is not registered"),
        [str(saving._get_layout(f"torch.{name}")) for name in ("strided", "sparse_csr")],
        (saving._is_zipfile(io.BytesIO(b"PK\3\4abc")), saving._is_zipfile(io.BytesIO(b"abc"))),
    )


@differential
def test_counts_around_profiles(torch: Any) -> Any:
    profiler = importlib.import_module(f"{torch.__name__}.autograd.profiler")
    parts = importlib.import_module(f"{torch.__name__}.autograd.profiler_util")
    unique = profiler.EnforceUnique()
    unique.see(1)
    steps = profiler.KinetoStepTracker
    start = steps.current_step()
    steps.init_step_count("first")
    counted = [steps.increment_step("first") - start, steps.increment_step("first") - start]
    known = (steps.erase_step_count("first"), steps.erase_step_count("first"))
    record = types.SimpleNamespace(start_ns=lambda: 5)
    records = parts.MemRecordsAcc([(record, False)])
    kernel = parts.Kernel("gemm", 0, 5)
    return (
        outcome(lambda: unique.see(1), "duplicate key"),
        counted,
        known,
        steps.current_step() - start,
        [len(list(records.in_interval(*span))) for span in ((0, 4), (0, 5), (6, 9))],
        parts.StringTable()["add"],
        (kernel.name, kernel.device, kernel.duration),
    )


def test_members_of_measurements() -> None:
    benchmark = importlib.import_module("flambeau.utils.benchmark")
    timer = benchmark.Timer("1 + 1", env="here")
    measured = timer.timeit(10)
    assert measured.env == "here"
    assert benchmark.Timer("1 + 1").timeit(10).env == "Unspecified env"
    assert benchmark.Measurement(1, [1.0, 1.0, 1.0], measured.task_spec).meets_confidence()
    assert not benchmark.Measurement(1, [1.0, 2.0, 9.0], measured.task_spec).meets_confidence()
    with pytest.raises(NotImplementedError, match="blocked_autorange"):
        timer.repeat()


def test_tags_of_operators_have_names() -> None:
    assert flambeau.Tag.pointwise.name == "pointwise"


def test_older_names_of_times_on_devices() -> None:
    with flambeau.profiler.profile() as profile:
        flambeau.ones(2) + 1
    event = profile.events()[0]
    for older in ("cuda_time", "cuda_time_total", "self_cuda_time_total", "self_cuda_memory_usage"):
        with pytest.warns(FutureWarning, match=f"`{older}` is deprecated"):
            assert getattr(event, older) == 0


@differential
def test_what_all_storages_have(torch: Any) -> Any:
    storage = torch.ones(3).untyped_storage()
    names = ("cpu", "data_ptr", "element_size", "from_file", "is_shared", "nbytes", "share_memory_")
    return [callable(getattr(torch.types.Storage, name)) for name in names], [hasattr(storage, name) for name in names]


@differential
def test_sizes_are_nests(torch: Any) -> Any:
    pytree, size = torch.utils._pytree, torch.Size([1, 2])
    return (
        *(pytree.tree_leaves([size]), type(pytree.tree_map(abs, size)).__name__),
        *(str(pytree.tree_flatten(size)), str(pytree.tree_flatten_with_path(size)[0])),
        pytree.treespec_dumps(pytree.tree_structure(size)),
        *(pytree._list_flatten_with_keys([1])[1], pytree._tuple_flatten_with_keys((1,))[1]),
    )


@differential
def test_every_namespace_of_operators_is_there(torch: Any) -> Any:
    return hasattr(torch.ops.anything, "operator"), outcome(lambda: torch.ops.anything.operator, "has no attribute")


@differential
def test_powers_of_two_in_eight_bits(torch: Any) -> Any:
    numbers = torch.tensor(
        [0.0, -0.0, -1.0, 1.0, 3.0, -3.0, 0.75, 1e-40, 3e38, float("inf"), float("-inf"), float("nan")]
    )
    kinds = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
    return [numbers.to(kind).to(torch.float8_e8m0fnu).view(torch.uint8) for kind in kinds]


@differential
def test_indices_of_other_layouts(torch: Any) -> Any:
    to_csr, to_coo = torch._convert_indices_from_coo_to_csr, torch._convert_indices_from_csr_to_coo
    rows, begins, columns = torch.tensor([0, 0, 2]), torch.tensor([0, 2, 2, 3]), torch.tensor([0, 1, 2])
    batch = torch.tensor([[0, 1, 2], [0, 2, 2]]), torch.tensor([[0, 1], [1, 0]])
    return (
        *(to_csr(rows, 3), to_csr(rows, 4, out_int32=True), to_csr(rows[:0], 2), to_csr(rows, 3).dtype),
        *(to_coo(begins, columns), to_coo(begins, columns, transpose=True), to_coo(*batch)),
        *(to_coo(begins, columns, out_int32=True), outcome(lambda: to_csr(batch[1], 3))),
    )


@differential
def test_names_that_libraries_import(torch: Any) -> Any:
    name = torch.__name__
    pipes = importlib.import_module(f"{name}.utils.data.datapipes")
    worker = importlib.import_module(f"{name}.utils.data._utils.worker")
    numbers = pipes.datapipe._IterDataPipeSerializationWrapper(pipes.iter.IterableWrapper([1, 2]))
    items = pipes.datapipe._MapDataPipeSerializationWrapper(pipes.map.SequenceWrapper([1, 2]))
    marked = importlib.import_module(f"{name}.fx._symbolic_trace").compatibility

    @marked(is_backward_compatible=False)
    def function() -> int:
        return 3

    return (
        *(worker._generate_state(1234, 3), worker._generate_state(2**40 + 5, 0)),
        *(list(numbers), len(numbers), items[1], len(items), function()),
    )
