"""The command as a whole: help, exit codes, colours, `flambeau info`."""

from __future__ import annotations

import importlib.util
import io
import json
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._cli.terminal import coloured, plural, printable, readable_size

from .calls import ROOT, call, start

Capture = pytest.CaptureFixture[str]


def test_help_and_version(capsys: Capture) -> None:
    status, out, _ = call(capsys, "--help")
    assert status == 0
    for name in ("inspect", "convert", "run", "launch", "info", "explain", "Exit codes"):
        assert name in out
    for name in ("inspect", "convert", "run", "launch", "info", "explain"):
        status, out, _ = call(capsys, name, "--help")
        assert status == 0
        assert out.startswith(f"usage: flambeau {name}")
    assert call(capsys, "--version") == (0, f"flambeau {flambeau.__version__}\n", "")


def test_wrong_calls_end_with_two(capsys: Capture) -> None:
    for arguments in ((), ("nothing",), ("inspect",), ("info", "--wrong")):
        status, _, err = call(capsys, *arguments)
        assert status == 2
        assert "usage: flambeau" in err


def test_info(capsys: Capture) -> None:
    status, out, _ = call(capsys, "info")
    assert status == 0
    for section in ("versions", "processor", "threads", "accelerators"):
        assert f"\n{section}\n" in f"\n{out}"
    facts = json.loads(call(capsys, "info", "--json").out)
    assert facts["versions"]["flambeau"] == flambeau.__version__
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["threads"]["flambeau"] == flambeau.get_num_threads()
    assert facts["accelerators"]["cuda"] == []
    assert facts["processor"]["byte order"] == sys.byteorder


def test_info_about_kernels_and_memory() -> None:
    facts = json.loads(start("info", "--json").out)
    assert facts["threads"]["blas"] == 1
    generator = facts["code generator"]
    assert generator["state"] == "on"
    assert generator["llvm"].count(".") == 2
    assert generator["target"]
    assert "state" in facts["onednn"]
    assert facts["memory pool"]["state"] == "on"
    for name in ("used bytes", "reserved bytes", "kept at most, bytes"):
        assert isinstance(facts["memory pool"][name], int)


def test_info_about_the_cache(tmp_path: Path) -> None:
    facts = json.loads(start("info", "--json", FLAMBEAU_CACHE_DIR=str(tmp_path)).out)["kernel cache"]
    again = json.loads(start("info", "--json", FLAMBEAU_CACHE_DIR=str(tmp_path)).out)["kernel cache"]
    files = list(tmp_path.glob("*.o"))
    assert facts["folder"] == str(tmp_path)
    assert (again["kernels"], again["bytes"]) == (len(files), sum(each.stat().st_size for each in files))
    assert files


def test_info_says_what_missing_parts_cost(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    from flambeau._backends.cpu import onednn

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "llvmlite" else find(name))
    monkeypatch.setattr(onednn, "available", lambda: False)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    out = call(capsys, "info").out
    assert "times as long. To install it: pip install llvmlite\n" in out
    assert "bfloat16 take 8 times as long" in out
    assert "To install it: pip install onednn-cpu-gomp\n" in out


def test_info_says_what_is_switched_off() -> None:
    variables = {"FLAMBEAU_GENERATED": "0", "FLAMBEAU_CACHE": "0"}
    facts = json.loads(start("info", "--json", **variables).out)
    assert "FLAMBEAU_GENERATED=0" in facts["code generator"]["state"]
    assert "FLAMBEAU_CACHE=0" in facts["kernel cache"]["folder"]
    assert facts["memory pool"]["state"].startswith("off")


def test_as_a_program() -> None:
    status, out, err = start("info", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["versions"]["flambeau"] == flambeau.__version__


def test_the_script_is_declared() -> None:
    assert 'flambeau = "flambeau._cli.main:main"' in (ROOT / "pyproject.toml").read_text()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured("x", "red", io.StringIO()) == "x"
    assert coloured("x", "red", Terminal()) == "\033[31mx\033[0m"
    monkeypatch.setenv("TERM", "dumb")
    assert coloured("x", "red", Terminal()) == "x"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("x", "red", Terminal()) == "x"
    flambeau.save({"a": flambeau.ones(1)}, tmp_path / "a.pt")
    assert "\033" not in call(capsys, "inspect", tmp_path / "a.pt").out


def test_words() -> None:
    assert [readable_size(each) for each in (0, 999, 1000, 1536, 10**6, 25 * 10**9)] == [
        "0 B", "999 B", "1 kB", "1.54 kB", "1 MB", "25 GB",
    ]  # fmt: skip
    assert (plural(1, "tensor"), plural(2000, "tensor")) == ("1 tensor", "2,000 tensors")
    assert printable("a\x1bb\n") == "a\\x1bb\\n"
    assert printable("x" * 300) == "x" * 197 + "..."


def test_the_source_of_a_call_is_the_one_that_runs(capsys: Capture) -> None:
    from flambeau._dispatch.call.primitive import CALLS
    from flambeau._dispatch.op import OPS

    a = flambeau.ones(2, 2)
    for _ in range(CALLS + 1):
        a.mm(a)
    for name, function in (("mm", type(OPS["mm"]).__call__), ("exp", flambeau.exp), ("atan2", flambeau.atan2)):
        status, out, _ = call(capsys, "explain", "op", name)
        assert status == 0
        scope: dict[str, Any] = {}
        exec(compile(out.partition("# its kernel")[0], "shown", "exec"), scope)
        shown = scope.get("__call__") or scope["made"]
        if name == "mm":
            code = shown.__code__
        else:  # from Python 3.14 on there is code of annotations, too
            inner = [each for each in shown.__code__.co_consts if hasattr(each, "co_code")]
            code = next(each for each in inner if each.co_name == function.__code__.co_name)
        assert code.co_code == function.__code__.co_code
        assert code.co_names == function.__code__.co_names
    assert call(capsys, "explain", "op", "layer_norm")[1].count("output._grad_fn = None") == 1
    status, _, error = call(capsys, "explain", "op", "ad")
    assert status == 1
    assert "perhaps add" in error
