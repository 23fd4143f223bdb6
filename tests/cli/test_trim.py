"""`flambeau trim`: links in place of copies, libraries without tables for debuggers, packages without their tests."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest

from flambeau._cli import trim
from flambeau._cli.library_tables import make_smaller, without_symbols, without_unwinding
from flambeau._cli.main import main

ROOT = Path(__file__).parents[2]
ON_LINUX_X86_64 = sys.platform == "linux" and os.uname().machine == "x86_64"


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three copies of a library and another version of it; no package is required."""
    for name in ("libdnnl.so", "libdnnl.so.3", "libdnnl.so.3.2"):
        (tmp_path / name).write_bytes(b"machine code" * 1000)
    (tmp_path / "libdnnl.so.2").write_bytes(b"older" * 1000)
    monkeypatch.setenv("FLAMBEAU_ONEDNN_LIBRARY", str(tmp_path / "libdnnl.so.3"))
    monkeypatch.setattr(trim, "_required", lambda: iter(()))
    return tmp_path


def test_equal_copies_become_links(copies: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trim"]) == 0
    assert "24 kB freed." in capsys.readouterr().out
    assert [path.name for path in sorted(copies.iterdir()) if path.is_symlink()] == ["libdnnl.so", "libdnnl.so.3.2"]
    assert {path.read_bytes()[:5] for path in copies.iterdir()} == {b"machi", b"older"}
    assert sum(path.stat().st_size for path in copies.iterdir() if not path.is_symlink()) == 12_000 + 5_000
    assert main(["trim"]) == 0
    assert "nothing to trim" in capsys.readouterr().out


def test_nothing_to_trim(copies: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FLAMBEAU_ONEDNN_LIBRARY", str(copies / "none"))
    assert main(["trim"]) == 0
    assert capsys.readouterr().out == "There is nothing to trim.\n"


def test_a_package_required_on_several_systems_is_trimmed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "numpy>=2; sys_platform == 'linux'",
        "numpy>=2.1; sys_platform == 'darwin'",
        "absent-package",
        "pytest; extra == 'test'",
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: lines)
    assert list(trim._required()) == ["numpy"]


def package(folder: Path, **files: str) -> dict[Path, Path]:
    """A package's files by the names under which it lists them, in a folder that is itself called tests."""
    for name, content in files.items():
        path = folder / "tests" / "some" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(content)
    return {path.relative_to(folder / "tests"): path for path in sorted(folder.rglob("*.py"))}


def test_only_folders_of_the_package_count_as_its_tests(tmp_path: Path) -> None:
    files = package(tmp_path, code="import numpy  # no tests", tests__check="from . import other", tests__other="")
    found = trim._tests(files)
    assert sorted(path.name for path in found) == ["check.py", "other.py"]
    assert trim._remove(found) == len("from . import other")
    assert [path.name for path in (tmp_path / "tests" / "some").iterdir()] == ["code.py"]


@pytest.mark.parametrize("line", ["import some.tests.check", "    from .tests import check", "from .. import tests"])
def test_tests_that_other_files_import_stay(tmp_path: Path, line: str) -> None:
    assert trim._tests(package(tmp_path, code=f"def f():\n{line}\n", tests__check="")) == []


def test_tests_stay_that_other_files_import_by_name(tmp_path: Path) -> None:
    """NumPy 2.2 is like that: its functions for users' tests import a module from its own."""
    files = package(
        tmp_path,
        code="from some.tests.check import number",
        conftest="import some.tests.other",
        tests__check="    from some.tests.more.helper import text",
        tests__more__helper="",
        tests__other="",
    )
    package_itself = tmp_path / "tests" / "some" / "tests" / "__init__.py"
    package_itself.write_text("")
    files[package_itself.relative_to(tmp_path / "tests")] = package_itself
    assert sorted(path.name for path in trim._tests(files)) == ["conftest.py", "other.py"]


def test_tests_and_files_for_development_at_once(copies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = package(copies, code="", tests__check="")
    stubs = [path.with_suffix(".pyi") for path in files.values()]
    for path in stubs:
        path.write_text("")
    files |= {path.relative_to(copies / "tests"): path for path in stubs}
    monkeypatch.setattr(trim, "_required", lambda: iter(["package"]))
    monkeypatch.setattr(trim, "_files", lambda name: dict(files) if name == "package" else {})
    assert main(["trim", "--development"]) == 0
    assert [path.name for path in files.values() if path.exists()] == ["code.py"]


def loaded(data: bytes) -> list[tuple[int, int, int, bytes]]:
    """What a system loads of a library: kind, address and size of its segments, and their bytes."""
    at, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    found = []
    for number in range(count):
        kind, _, offset, address, _, length, size, alignment = struct.unpack_from("<IIQQQQQQ", data, at + number * 56)
        assert kind != 1 or (address - offset) % alignment == 0
        found.append((kind, address, size, data[offset : offset + length]))
    return found


def without_places(data: bytes) -> list[tuple[int, int, int, bytes]]:
    """`loaded` but for the tables of where the parts of the file are, with which the first segment begins."""
    tables = 64 + 56 * struct.unpack_from("<H", data, 56)[0]
    return [(kind, address, size, part) for kind, address, size, part in loaded(data) if part[:4] != b"\x7fELF"] + [
        (kind, address, size, part[tables:]) for kind, address, size, part in loaded(data) if part[:4] == b"\x7fELF"
    ]


def libraries() -> list[Path]:
    """The shared libraries of NumPy and ml-dtypes."""
    files = [each for name in ("numpy", "ml-dtypes") for each in metadata.files(name) or ()]
    return [Path(str(each.locate())) for each in files if ".so" in each.suffixes]


@pytest.mark.skipif(not ON_LINUX_X86_64, reason="about libraries of Linux")
def test_what_is_loaded_of_a_library_stays_to_the_byte() -> None:
    smaller = 0
    for path in libraries():
        data = path.read_bytes()
        result = without_symbols(data)
        if result is not None:
            smaller += 1
            assert len(result) < len(data)
            found, wanted = without_places(result), without_places(data)
            assert len(found) == len(wanted)
            for one, other in zip(found, wanted, strict=True):
                assert one[:3] == other[:3]
                assert one[0] == 6 or one[3] == other[3]  # 6: the table of the places itself
            assert without_symbols(result) is None
    assert smaller >= 1 or not any(b".symtab" in path.read_bytes() for path in libraries())


@pytest.mark.skipif(not ON_LINUX_X86_64, reason="about libraries of Linux")
def test_damaged_libraries_stay(tmp_path: Path) -> None:
    library = tmp_path / "library.so"
    data = min((path.read_bytes() for path in libraries() if without_symbols(path.read_bytes())), key=len)
    for damaged in (b"", b"\x7fELF\x02\x01", b"MZ" + data[2:], data[:1000], data[:-100]):
        assert without_symbols(damaged) is None
        assert without_unwinding(damaged) is None
    for place in range(0, 64, 2):
        without_symbols(data[:place] + b"\xff\xff" + data[place + 2 :])
        without_unwinding(data[:place] + b"\xff\xff" + data[place + 2 :])
    # Called an object file, no process can load it.
    broken = data[:16] + b"\x01\x00" + data[18:]
    library.write_bytes(broken)
    assert without_symbols(broken) is not None
    assert make_smaller(library, without_symbols) == 0
    assert library.read_bytes() == broken
    assert list(tmp_path.iterdir()) == [library]


@pytest.mark.skipif(shutil.which("cc") is None or not ON_LINUX_X86_64, reason="needs a C compiler")
def test_a_library_works_without_its_symbols(tmp_path: Path) -> None:
    library, other = tmp_path / "library.so", tmp_path / "link.so"
    source = "static int hidden(int x) { return 3 * x; } int shown(int x) { return hidden(x) + 1; }"
    command = ["cc", "-shared", "-fPIC", "-O0", "-xc", "-", "-o", str(library)]
    subprocess.run(command, input=source, text=True, check=True)
    os.link(library, other)
    data = library.read_bytes()
    assert b"hidden" in data
    freed = make_smaller(library, without_symbols)
    assert freed == len(data) - library.stat().st_size > 0
    assert b"hidden" not in library.read_bytes()
    assert other.read_bytes() == data  # another environment's
    call = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).shown(4))"
    assert subprocess.check_output([sys.executable, "-c", call, str(library)], text=True) == "13\n"
    assert make_smaller(library, without_symbols) == 0


def at_addresses(data: bytes) -> Iterator[tuple[int, bytes]]:
    """What is loaded at which address, but for the tables of where the parts of the file are."""
    tables = 64 + 56 * struct.unpack_from("<H", data, 56)[0]
    for kind, address, _, part in loaded(data):
        if kind == 1:
            skipped = tables if part[:4] == b"\x7fELF" else 0
            yield address + skipped, part[skipped:]


def without_list_of_sections(data: bytes) -> bytes:
    """The library with zeros for its list of sections, which some tools put where it is loaded and nobody reads it."""
    begin, width, count = struct.unpack_from("<Q10xHH", data, 40)
    return data[:begin] + bytes(width * count) + data[begin + width * count :]


@pytest.mark.skipif(not ON_LINUX_X86_64, reason="about libraries of Linux")
def test_what_else_is_loaded_stays_without_the_tables_for_unwinding() -> None:
    gaps = 0
    for path in libraries():
        data = path.read_bytes()
        result = without_unwinding(data)
        assert result is None or b".gcc_except_table" not in data
        if result is None:
            continue
        before, after = (list(at_addresses(without_list_of_sections(each))) for each in (data, result))
        assert len(after) == len(before) + 1
        for start, part in after:
            (whole,) = (each for each in before if each[0] <= start and start + len(part) <= each[0] + len(each[1]))
            assert part == whole[1][start - whole[0] :][: len(part)]
        missing = sum(len(part) for _, part in before) - sum(len(part) for _, part in after)
        assert missing == len(data) - len(result) > 0
        assert without_unwinding(result) is None
        gaps += 1
    assert gaps


def unwinding_library(folder: Path, language: str, source: str) -> Path:
    """A library of many functions, so that their tables take whole pages."""
    library = folder / f"{language.strip('+')}{len(language)}.so"
    many = "".join(f"int shown{i}(int x) {{ return x % {i + 2}; }}" for i in range(300))
    if language == "c++":
        many = f'extern "C" {{ {many} }}'
    command = ["cc", "-shared", "-fPIC", "-O1", f"-x{language}", "-", "-o", str(library), "-lstdc++"]
    subprocess.run(command, input=many + source, text=True, check=True)
    return library


@pytest.mark.skipif(shutil.which("cc") is None or not ON_LINUX_X86_64, reason="needs a C compiler")
def test_a_library_works_without_its_tables_for_unwinding(tmp_path: Path) -> None:
    library = unwinding_library(tmp_path, "c", "")
    assert make_smaller(library, without_unwinding) >= 4096
    call = "import ctypes, sys; library = ctypes.CDLL(sys.argv[1]); print(library.shown0(7), library.shown299(1000))"
    assert subprocess.check_output([sys.executable, "-c", call, str(library)], text=True) == "1 97\n"
    assert make_smaller(library, without_unwinding) == 0


@pytest.mark.skipif(shutil.which("c++") is None or not ON_LINUX_X86_64, reason="needs a C++ compiler")
def test_libraries_that_catch_exceptions_keep_their_tables(tmp_path: Path) -> None:
    source = 'extern "C" int caught(int x) { try { throw x + 1; } catch (int y) { return y; } }'
    library = unwinding_library(tmp_path, "c++", source)
    assert make_smaller(library, without_unwinding) == 0
    call = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).caught(7))"
    assert subprocess.check_output([sys.executable, "-c", call, str(library)], text=True) == "8\n"
    # Where it is wrongly said to catch nothing, that shows: the tables were needed.
    assert make_smaller(library, partial(without_unwinding, catches_nothing=True)) >= 4096
    assert subprocess.run([sys.executable, "-c", call, str(library)], capture_output=True, check=False).returncode != 0
