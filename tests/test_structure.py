"""The order of the public packages, circles of imports, files in a folder: lists and counts that only shrink."""

from __future__ import annotations

import re

from tools import structure
from tools.structure import ENGINE, MODULES, circles, graph, room_of

FLOORS = (
    "__future__", "_custom_ops", "_environment", "_lobpcg", "_logging", "_linalg_utils", "_prims_common", "_refs",
    "_sources", "_tensor_str", "_utils_internal", "_VF", "classes", "_classes", "fft", "linalg", "monitor", "mps",
    "mtia", "numa", "quasirandom", "return_types", "signal", "sparse", "special", "testing", "types", "version", "xpu",
    "functional", "overrides", "futures", "torch_version", "_wiring", "__init__", "amp", "cuda", "random", "backends",
    "__config__", "cpu", "_serialization", "serialization", "hub", "nn", "models", "_lowrank", "storage", "jit",
    "optim", "_tensor", "_higher_order_ops", "ops", "library", "_library", "safetensors", "_stand_in", "utils", "func",
    "_subclasses", "_guards", "_vmap_internals", "as_torch", "_rare_names", "masked", "profiler", "_C", "package",
    "onnx", "fx", "export", "_inductor", "ao", "quantization", "_decomp", "_functorch", "_dynamo", "nested",
    "accelerator", "distributed", "distributions", "multiprocessing", "_learn", "_cli", "__main__", "_jit_internal",
    "_utils", "_compile", "functorch", "_operators",
)  # fmt: skip
"""The public packages from the bottom up: each imports those before it."""

UPWARD = {"_serialization -> nn", "cuda -> nn", "nn -> distributed", "nn -> utils"}
"""The imports against that order. Mend one and take it out; do not add to them."""

CIRCLES: set[str] = set()
"""Circles of more than four files that import each other as they load."""

LATE_CIRCLES: list[int] = []
"""Sizes of the circles of more than four files if imports inside functions count."""

MOST_FILES = 25
"""Of a folder of the engine."""


def test_the_table_and_the_picture_of_the_engine() -> None:
    page = (structure.PACKAGE.parent / "docs" / "design.md").read_text(encoding="utf-8")
    assert structure.table() in page, f"put this into docs/design.md:\n{structure.table()}"
    drawn = structure.PICTURE.read_text(encoding="utf-8")
    shown = {tuple(each) for each in re.findall(r"<title>(.*) imports (.*): \d+ times", drawn)}
    assert shown == set(structure.arrows()), "run python -m tools.structure"


def test_every_public_package_has_a_floor() -> None:
    rooms = {room_of(module) for module in MODULES} - {*ENGINE, "_torch"}
    assert rooms - set(FLOORS) == set(), "give it a place in FLOORS"
    assert len(set(FLOORS)) == len(FLOORS)


def test_public_packages_import_downwards() -> None:
    floors = {room: number for number, room in enumerate(FLOORS)}
    found = set()
    for module, targets in graph(late=True).items():
        room = room_of(module)
        found |= {
            f"{room} -> {room_of(target)}"
            for target in targets
            if room in floors and floors.get(room_of(target), -1) > floors[room]
        }
    assert found - UPWARD == set(), "an import against the order of FLOORS: move what is imported"
    assert UPWARD - found == set(), "mended: take it out of UPWARD"


def test_circles_of_imports() -> None:
    large = {" ".join(circle) for circle in circles(graph(late=False)) if len(circle) > 4}
    assert large == CIRCLES


def test_circles_of_late_imports() -> None:
    sizes = sorted((len(circle) for circle in circles(graph(late=True)) if len(circle) > 4), reverse=True)
    assert sizes <= LATE_CIRCLES
    assert sum(sizes) <= sum(LATE_CIRCLES)


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert sorted(circles(graph)) == [["a", "b", "c"], ["d", "e"]]


def test_folders_of_the_engine_are_small() -> None:
    counts: dict[str, int] = {}
    for path in MODULES.values():
        folder = path.parent.relative_to(structure.PACKAGE).as_posix()
        if folder.split("/")[0] in ENGINE and path.name != "__init__.py":
            counts[folder] = counts.get(folder, 0) + 1
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}
