"""Finding and loading the library, where it is missing too; what its statuses become; the layout of its structures."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._backends.cpu import onednn
from flambeau._backends.cpu.onednn import constants, library
from flambeau._backends.cpu.onednn.library import Library, Unsupported, get


class Function:
    """A function of `Loaded`."""

    _as_parameter_ = 4096
    """Where it begins, as `ctypes` asks."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.calls: list[tuple[Any, ...]] = []
        self.restype: Any = None
        self.argtypes: Any = None

    def __call__(self, *args: Any) -> int:
        self.calls.append(args)
        first = args[0] if args else None
        if not self.status and isinstance(getattr(first, "_obj", None), ctypes.c_void_p):
            first._obj.value = 4711  # type: ignore[union-attr]
        return self.status


class Loaded:
    """What `ctypes.CDLL` returns, as far as it is looked at."""

    def __init__(self, major: int = 3) -> None:
        self.version = constants.Version(major, 2, 0, b"", 2, 0)
        for name in constants.SIGNATURES:
            setattr(self, name, Function())
        self.dnnl_version: Any = Function(ctypes.addressof(self.version))


# ----- structures ---------------------------------------------------------------------------------------------------


def test_structures_have_the_layout_of_the_c_interface() -> None:
    pointer = ctypes.sizeof(ctypes.c_void_p)
    assert ctypes.sizeof(constants.ExecutionArgument) == 2 * pointer
    assert constants.ExecutionArgument.memory.offset == pointer
    assert ctypes.sizeof(constants.Dims) == 12 * 8
    assert constants.Version.hash.offset == 16
    assert constants.Version.cpu_runtime.offset == 16 + pointer


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("matmul", 7),
        ("convolution_forward", 13),
        ("convolution_backward_data", 12),
        ("convolution_backward_weights", 13),
        ("deconvolution_forward", 13),
        ("reorder", 6),
    ],
)
def test_functions_have_as_many_parameters_as_in_the_c_interface(name: str, count: int) -> None:
    result, parameters = constants.SIGNATURES[f"dnnl_{name}_primitive_desc_create"].split(":")
    assert result == "i"
    assert len(parameters) == count


# ----- finding ------------------------------------------------------------------------------------------------------


def installed(folder: Path) -> Path:
    """A package with the library's name, installed with its library elsewhere than usual."""
    info = folder / "site" / "onednn_cpu_gomp-2023.2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: onednn-cpu-gomp\nVersion: 2023.2.0\n")
    (info / "RECORD").write_text("../elsewhere/libdnnl.so.3,,\n../elsewhere/libdnnl.so,,\n")
    place = folder / "elsewhere" / "libdnnl.so.3"
    place.parent.mkdir()
    place.write_text("not a library")
    return place


def test_missing_library_is_no_error(unloaded: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unloaded.setattr(sys, "prefix", str(tmp_path))
    unloaded.setattr(sys, "path", [str(tmp_path)])
    assert library.find() is None
    assert not onednn.available()
    assert "onednn-cpu-gomp" in (onednn.reason() or "")
    ones = np.ones((2, 2), np.float32)
    with pytest.raises(Unsupported, match="not installed"):
        onednn.matmul(ones, ones)
    with pytest.raises(Unsupported, match="not installed"):
        onednn.version()


def test_library_is_found_in_the_environments_lib_folder(unloaded: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    place = tmp_path / "lib" / "libdnnl.so.3"
    place.touch()
    unloaded.setattr(sys, "prefix", str(tmp_path))
    assert library.find() == place


def test_library_is_found_where_its_package_says(unloaded: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = installed(tmp_path)
    unloaded.setattr(sys, "prefix", str(tmp_path / "nothing"))
    unloaded.setattr(sys, "path", [str(tmp_path / "site")])
    found = library.find()
    assert found is not None
    assert found.samefile(place)
    place.unlink()
    assert library.find() is None


def test_variable_names_the_file(unloaded: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unloaded.setenv("FLAMBEAU_ONEDNN_LIBRARY", str(tmp_path / "mine.so"))
    assert library.find() == tmp_path / "mine.so"
    assert "mine.so" in (onednn.reason() or "")


def test_variable_switches_the_library_off(unloaded: pytest.MonkeyPatch) -> None:
    unloaded.setenv("FLAMBEAU_ONEDNN", "0")
    unloaded.setattr(library, "find", lambda: pytest.fail("looked for a library that is switched off"))
    assert not onednn.available()
    assert onednn.reason() == "oneDNN is switched off by FLAMBEAU_ONEDNN=0"


def test_file_that_is_no_library_is_no_error(unloaded: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unloaded.setenv("FLAMBEAU_ONEDNN_LIBRARY", str(installed(tmp_path)))
    assert "cannot be loaded" in (onednn.reason() or "")


def test_library_without_the_functions_is_no_error(unloaded: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unloaded.setenv("FLAMBEAU_ONEDNN_LIBRARY", str(tmp_path))
    unloaded.setattr(ctypes, "CDLL", lambda name: object())
    assert "cannot be loaded" in (onednn.reason() or "")


def test_search_happens_once(unloaded: pytest.MonkeyPatch) -> None:
    searches: list[int] = []
    unloaded.setattr(library, "find", lambda: searches.append(1))
    threads = [threading.Thread(target=onednn.available) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert searches == [1]


def test_import_neither_loads_nor_searches() -> None:
    program = (
        "import ctypes, sys\n"
        "ctypes.CDLL = None\n"
        "import flambeau._backends.cpu.onednn\n"
        "print(*[name for name in ('importlib.metadata', 'ml_dtypes', 'torch') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


# ----- statuses -----------------------------------------------------------------------------------------------------


def test_other_major_version_is_refused() -> None:
    with pytest.raises(OSError, match=r"oneDNN 3 is needed, but lib is version 4\.2\.0"):
        Library(Loaded(4), Path("lib"))


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        (1, MemoryError, "out of memory"),
        (2, Unsupported, "invalid arguments"),
        (3, Unsupported, "unimplemented"),
        (5, RuntimeError, "runtime error"),
        (99, RuntimeError, "status 99"),
    ],
)
def test_status_becomes_an_exception(status: int, error: type[Exception], text: str) -> None:
    loaded = Loaded()
    made = Library(loaded, Path("lib"))
    loaded.dnnl_matmul_primitive_desc_create.status = status  # type: ignore[attr-defined]
    with pytest.raises(error, match=f"oneDNN's matmul_primitive_desc_create: {text}"):
        made.create("matmul_primitive_desc_create", "primitive_desc_destroy")


def test_objects_are_destroyed_with_their_last_reference() -> None:
    loaded = Loaded()
    made = Library(loaded, Path("lib"))
    handle = made.create("memory_create", "memory_destroy")
    destroy = loaded.dnnl_memory_destroy  # type: ignore[attr-defined]
    assert destroy.calls == []
    del handle
    assert destroy.calls == [(4711,)]


def test_each_thread_has_its_stream() -> None:
    loaded = Loaded()
    made = Library(loaded, Path("lib"))
    create = loaded.dnnl_stream_create  # type: ignore[attr-defined]
    made.stream()
    made.stream()
    assert len(create.calls) == 1
    thread = threading.Thread(target=made.stream)
    thread.start()
    thread.join()
    assert len(create.calls) == 2


def test_threads_are_those_of_the_openmp_runtime() -> None:
    loaded = Loaded()
    assert Library(loaded, Path("lib")).threads() == 0  # none to be seen
    loaded.omp_get_max_threads, loaded.omp_set_num_threads = Function(8), Function()  # type: ignore[attr-defined]
    made = Library(loaded, Path("lib"))
    assert made.threads() == 8
    made.set_threads(3)
    made.after_fork()
    made.set_threads(3)  # there are none to work with
    assert loaded.omp_set_num_threads.calls == [(3,), (1,), (1,)]  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="positive number of threads, but got 0"):
        made.set_threads(0)


def test_set_num_threads_is_heard() -> None:
    if not onednn.available() or get().ask_threads is None:
        pytest.skip("the library is not here, or has no such threads")
    before = flambeau.get_num_threads()
    try:
        flambeau.set_num_threads(1)
        assert get().threads() == 1
    finally:
        flambeau.set_num_threads(before)
    assert get().threads() == before


@pytest.mark.parametrize(
    ("machine", "isa", "exact"),
    [("x86_64", 0x7, False), ("x86_64", 0xF, True), ("x86_64", 0x27, False), ("x86_64", 0x67, True), ("arm", 1, True)],
)
def test_bytes_are_multiplied_exactly_with_the_right_instructions(
    machine: str, isa: int, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = Loaded()
    loaded.dnnl_get_effective_cpu_isa.status = isa  # type: ignore[attr-defined]
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert Library(loaded, Path("lib")).multiplies_bytes_exactly is exact


# ----- with the library ---------------------------------------------------------------------------------------------


def test_version_is_three(dnn: Any) -> None:
    assert dnn.available()
    assert dnn.version().startswith("3.")
    assert library.get().path.name.startswith("libdnnl.so")


FORK = """
import os, sys, threading
import numpy as np
from flambeau._backends.cpu import onednn
from flambeau._backends.cpu.onednn import primitives

primitives.reference_allowed = True
a = np.ones((300, 300), np.float32)
onednn.set_num_threads(2)
expected = onednn.matmul(a, a)
child = os.fork()
if not child:
    os._exit(0 if (onednn.matmul(a, a) == expected).all() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_forked_process_computes(dnn: Any) -> None:
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], timeout=60, check=False)
    assert run.returncode == 0


def test_threads_compute_at_the_same_time(dnn: Any) -> None:
    rng = np.random.default_rng(0)
    operands = [rng.standard_normal((2, 60, 60)).astype(np.float32) for _ in range(4)]
    wrong: list[int] = []

    def compute(number: int) -> None:
        a, b = operands[number]
        expected = a @ b
        wrong.extend(number for _ in range(50) if not np.allclose(dnn.matmul(a, b), expected, atol=1e-4))

    threads = [threading.Thread(target=compute, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


@pytest.mark.parametrize(("threads", "spins"), [(1, "2000"), (2, "2000"), (3, "20000"), (16, "20000")])
def test_many_threads_ask_for_work_longer(monkeypatch: pytest.MonkeyPatch, threads: int, spins: str) -> None:
    """The runtime reads the variable when it is loaded; afterwards the environment is as it was."""
    seen: list[str | None] = []
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(library, "num_threads", lambda: threads)
    monkeypatch.setattr(ctypes, "CDLL", lambda path: seen.append(os.environ.get("GOMP_SPINCOUNT")))
    library._loaded(Path("libdnnl.so.3"))
    assert "GOMP_SPINCOUNT" not in os.environ
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    library._loaded(Path("libdnnl.so.3"))
    assert seen == [spins, "7"]
