"""Kernels and the ways that the libraries of a GPU have chosen are kept on disk, for the same device and versions."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flambeau._backends.cuda.cudnn import convolutions as cudnn_convolutions
from flambeau._backends.cuda.cudnn import descriptors as cudnn_descriptors
from flambeau._backends.cuda.cudnn import frontend as cudnn
from flambeau._backends.cuda.linalg import blaslt
from flambeau._backends.cuda.runtime.compile_queue import COMPILE_QUEUE
from flambeau._backends.cuda.runtime.driver import CupyDriver
from flambeau._core.geometry.moving_windows import Geometry
from flambeau._core.process.gpu_choices import CHOICES

Make = Callable[[], Any]


class Bench:
    """A device and its libraries, which count what they work out."""

    def __init__(self) -> None:
        self.worked = 0
        self.version = "1"
        self.identity = "a device"
        self.reads = True
        self.writes = True

    def driver(self) -> Any:
        return SimpleNamespace(queue=lambda: 0, identity=lambda: self.identity)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.delenv("FLAMBEAU_CACHE", raising=False)
    found = Bench()
    for module in (blaslt, cudnn, cudnn_convolutions):
        monkeypatch.setattr(module, "driver", found.driver)
    for module in (cudnn, cudnn_convolutions):
        monkeypatch.setattr(module, "handle", lambda stream: 1)
    return found


# ----- each of the libraries ------------------------------------------------------------------------------------------


def graph(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A graph of cuDNN's front end."""

    class Refused(Exception): ...

    class Graph:
        def __init__(self, **options: Any) -> None:
            self.text = b""

        def build_plans(self) -> None:
            bench.worked += 1
            self.text = b"a plan"

        def serialize(self) -> list[int]:
            if not bench.writes:
                raise RuntimeError("this plan cannot be written down")
            return list(self.text)

        def deserialize(self, handle: int, text: list[int]) -> None:
            if not bench.reads:
                raise RuntimeError("another version's")
            self.text = bytes(text)

        def get_workspace_size(self) -> int:
            return 0

        def _execute(self, pointers: Any, workspace: int, handle: int) -> None:
            assert self.text == b"a plan"

        def __getattr__(self, name: str) -> Any:
            return lambda *given: None

    library = SimpleNamespace(
        pygraph=Graph, backend_version=lambda: bench.version, data_type=SimpleNamespace(HALF=1, FLOAT=2),
        heur_mode=SimpleNamespace(A=1, FALLBACK=2), cudnnGraphNotSupportedError=Refused,
        numerical_note=SimpleNamespace(NONDETERMINISTIC=1),
    )  # fmt: skip
    monkeypatch.setattr(cudnn, "library", lambda: library)
    return lambda: cudnn.Plan("float16", lambda graph: None, "forward", (2, 4))({})


def convolution(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A plan of cuDNN's for a convolution."""
    kept = cudnn_convolutions
    texts: dict[int, bytes] = {}

    def closed(kind: int, attributes: Any) -> int:
        number = len(texts) + 1
        given = {name: values for name, _, values in attributes}
        if kept._TEXT in given and not bench.reads:
            raise kept.Refused("another version's")
        bench.worked += kept._TEXT not in given
        texts[number] = given.get(kept._TEXT, b"a plan")
        return number

    def read_text(plan: int, name: int) -> bytes:
        if not bench.writes:
            raise kept.Refused("this plan cannot be written down")
        return texts[plan]

    def execute(handle: int, plan: int, pack: int) -> int:
        assert texts[plan] == b"a plan"
        return 0

    library = SimpleNamespace(cudnnBackendExecute=execute)
    for name, value in {
        "library": lambda: library, "version": lambda: bench.version, "closed": closed, "read_text": read_text,
        "read": lambda *given: [0], "_graph": lambda *given: 1, "_ways": lambda graph, mode, gpu: [mode],
        "_notes": lambda way: set(),
    }.items():  # fmt: skip
        monkeypatch.setattr(kept, name, value)
    monkeypatch.setattr(kept.Convolution, "_packed", lambda self, key: 1)
    form = np.empty((1, 1, 3, 3), np.float32)
    geometry = Geometry((1, 1), (0, 0), (1, 1), 1)
    return lambda: kept.Convolution(kept.FORWARD, "float32", [form] * 3, geometry)(1, 2, 3)


def product(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A product of cuBLASLt's."""

    class Library:
        def cublasLtMatmulAlgoGetHeuristic(self, *given: Any) -> int:
            bench.worked += 1
            ways, count = given[-2], given[-1]._obj
            ways[0].algorithm[0], count.value = 7, 1
            return 0

        cublasLtMatmul = ctypes.c_void_p(1)

        def __getattr__(self, name: str) -> Any:
            def call(first: Any, *given: Any) -> int:
                if name.endswith("Create"):
                    first._obj.value = 1
                return 0

            return call

    library = Library()
    monkeypatch.setattr(blaslt, "_library", lambda: library)
    monkeypatch.setattr(blaslt, "_version", lambda: bench.version)
    monkeypatch.setattr(blaslt, "_handle", lambda ordinal: ctypes.c_void_p(1))

    def make() -> None:
        matrix = blaslt.Matrix(False, 4)
        made = blaslt.Product("float32", 4, 4, 4, matrix, matrix, False, False)
        assert made._way.algorithm[0] == 7

    return make


def kernel(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A compiled kernel."""

    class Module:
        def load(self, code: bytes) -> None:
            assert code == b"code of a kernel"

        def get_function(self, name: str) -> Any:
            return SimpleNamespace(ptr=5)

    def compiled(source: str, options: tuple[str, ...], cache_in_memory: bool) -> tuple[bytes, None]:
        bench.worked += 1
        return f"code of {source}".encode(), None

    own = object.__new__(CupyDriver)
    library = SimpleNamespace(
        compiler=SimpleNamespace(compile_using_nvrtc=compiled), function=SimpleNamespace(Module=Module)
    )
    vars(own).update(_runtime=SimpleNamespace(setDevice=lambda number: None), _library=library, _launcher=1)
    vars(own).update(_failure=RuntimeError)
    monkeypatch.setattr(CupyDriver, "identity", lambda self: bench.identity + bench.version)

    def make() -> None:
        table, _ = own._kernel("a kernel")
        assert table[2] == 5

    return make


LIBRARIES = [graph, convolution, product, kernel]
each_library = pytest.mark.parametrize("library", LIBRARIES, ids=[each.__name__ for each in LIBRARIES])


# ----- the tests ------------------------------------------------------------------------------------------------------


@each_library
def test_what_was_worked_out_once_is_there(library: Any, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    make = library(bench, monkeypatch)
    for _ in range(3):
        make()
    assert bench.worked == 1


@each_library
@pytest.mark.parametrize("what", ["version", "identity"])
def test_other_software_and_devices_work_for_themselves(
    library: Any, what: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = library(bench, monkeypatch)
    make()
    setattr(bench, what, "2")
    make()
    make()
    assert bench.worked == 2


@each_library
def test_damaged_files_are_made_anew(
    library: Any, bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make = library(bench, monkeypatch)
    make()
    (file,) = (tmp_path / "kept").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    make()
    make()
    assert bench.worked == 2


@each_library
def test_nothing_is_kept_where_the_cache_is_off(library: Any, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAMBEAU_CACHE", "0")
    make = library(bench, monkeypatch)
    make()
    make()
    assert bench.worked == 2


@pytest.mark.parametrize("library", [graph, convolution])
@pytest.mark.parametrize("can", ["reads", "writes"])
def test_what_a_library_does_not_read_or_write_is_worked_out(
    library: Any, can: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    setattr(bench, can, False)
    make = library(bench, monkeypatch)
    make()
    make()
    assert bench.worked == 2


def test_a_library_with_nothing_to_choose_gets_ready_beside(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for something that nobody needs, once, by another thread, while Python goes ahead."""
    make = product(bench, monkeypatch)
    make()
    asked, ask = threading.Semaphore(0), blaslt._ask
    monkeypatch.setattr(blaslt, "_is_awake", False)
    monkeypatch.setattr(blaslt, "_ask", lambda: [ask(), asked.release()])
    make()
    assert bench.worked == 1
    with COMPILE_QUEUE.deferring_launches():
        make()
        make()
    assert asked.acquire(timeout=60)
    make()
    assert bench.worked == 2


def test_texts_go_in_and_out_of_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the library's own functions, which take addresses."""
    texts: dict[int, bytes] = {}

    class Library:
        def cudnnBackendCreateDescriptor(self, kind: Any, made: Any) -> int:
            made._obj.value = 7
            return 0

        def cudnnBackendSetAttribute(self, descriptor: int, name: int, of_type: int, count: int, place: int) -> int:
            texts[descriptor] = ctypes.string_at(place, count)
            return 0

        def cudnnBackendGetAttribute(self, *given: Any) -> int:
            descriptor, _, _, most, counted, place = given
            text = texts[descriptor]
            ctypes.c_int64.from_address(counted).value = len(text)
            if place is not None:
                ctypes.memmove(place, text, most)
            return 0

    monkeypatch.setattr(cudnn_descriptors, "library", Library)
    text = b'{"plan": "\xc3\xa9\x00"}'
    made = cudnn_descriptors.opened(5, [(405, cudnn_descriptors.CHARACTER, text)])
    assert texts == {7: text}
    assert cudnn_descriptors.read_text(made, 405) == text


def test_choices_of_the_program_are_other_plans(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    make = convolution(bench, monkeypatch)
    make()
    for choice, value in (("shortened_convolutions", False), ("deterministic", True)):
        monkeypatch.setattr(CHOICES, choice, value)
        make()
        make()
    assert bench.worked == 3
