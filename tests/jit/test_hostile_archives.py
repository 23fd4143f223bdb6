"""Archives that were damaged or written to do harm: they are refused with a clear error, and nothing runs."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau
from flambeau.jit._language.program import Program
from flambeau.jit._language.types import NotInLanguage

FORWARD = """\
class M(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  weight : Tensor
  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
{body}
"""
OBJECT = b"\x80\x02c__torch__\nM\n)\x81}(X\x08\x00\x00\x00training\x88ub."
CLEAR = (RuntimeError, flambeau.jit.Error, NotImplementedError)


def archive(body: str = "    return x", data: bytes = OBJECT, **records: bytes) -> bytes:
    """An archive whose `forward` has this body."""
    buffer = io.BytesIO()
    content = {
        "data.pkl": data,
        "code/__torch__.py": FORWARD.format(body=body).encode(),
        "constants.pkl": pickle.dumps((), 2),
        "version": b"3\n",
        **{name.replace("__", "/").replace("_dot_", "."): each for name, each in records.items()},
    }
    with zipfile.ZipFile(buffer, "w") as file:
        for name, each in content.items():
            file.writestr(f"archive/{name}", each)
    return buffer.getvalue()


def load(content: bytes) -> Any:
    return flambeau.jit.load(io.BytesIO(content))


def test_the_archive_of_these_tests_is_sound() -> None:
    assert load(archive("    return torch.add(x, 1)"))(flambeau.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "body",
    [
        '    return __import__("os").system("touch gone")',
        '    return eval("1")',
        '    return open("gone", "w")',
        "    return x.__class__.__mro__",
        "    return (x).__class__()",
        "    return self.__dict__",
        "    return self.forward.__globals__",
        '    return getattr(self, "__class__")',
        '    return getattr(x, "numpy")',
        "    return ().__class__.__base__.__subclasses__()",
        '    return torch.load("gone")',
        '    return torch.save(x, "gone")',
        '    return torch.from_file("gone", True, 10)',
        "    return torch.numpy(x)",
        "    return torch.os.system(x)",
        '    return torch.ops.load_library("gone")',
        '    return ops.os.system("touch gone")',
        "    return ops.prim.PythonOp(x)",
        "    return ops.aten.apply_(x)",
        "    return __torch__.os.system(x)",
        "    return __builtins__",
        "    return CONSTANTS.c0",
        "    return CONSTANTS.__class__",
        "    return unknown",
        "    return str.format",
        '    return torch.format.__globals__("{}")',
        "    return [].append",
        "    self.forward = x\n    return x",
        "    x.data = x\n    return x",
        "    return (self).forward(x, )",
        '    return torch.mul("a", 100000000000)',
        "    return torch.mul([0], 100000000000)",
        "    return ops.prim.rangelist(100000000000)",
        '    return torch.format("{0.__class__}{}", x, x)',
    ],
)
def test_programs_reach_nothing(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        result = load(archive(body))(flambeau.ones(2))
    except CLEAR:
        pass
    else:
        assert isinstance(result, str), "a program returned something that it must not have"
        assert result.startswith("{0.__class__}"), "templates are filled with values alone"
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "body",
    [
        "    import os\n    return x",
        "    return lambda: x",
        "    return [y for y in x if y]\n    yield x",
        '    exec("1")\n    global a\n    return x',
        "    try:\n      return x\n    except:\n      return x",
        "    return f'{x.__class__}'",
        "    del x",
        "    return (y := x)",
        "    return x if x else " + "(" * 90 + "x" + ")" * 90 + " @ x",
        "    return " + "-" * 5000 + "1",
        "    return " + "x" + ".y" * 5000,
        "    return " + "torch.neg(" * 400 + "x" + ")" * 400,
        "  not python at all (",
        "\0",
    ],
)
def test_other_syntax_is_refused_when_loading(body: str) -> None:
    with pytest.raises(RuntimeError, match=r"TorchScript|nested"):
        load(archive(body))


def test_huge_sources_are_refused() -> None:
    with pytest.raises(NotInLanguage, match="characters of code"):
        Program({"__torch__": " " * (65 << 20)})


class _Call:
    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self.parts = function, args

    def __reduce__(self) -> Any:
        return self.parts


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(_Call(os.system, "touch gone"), 2),
        pickle.dumps(_Call(eval, "1"), 2),
        pickle.dumps(_Call(getattr, 1, "real"), 2),
        pickle.dumps({"a": 1}, 2),
        b"\x80\x02c__torch__\nN\n)\x81}b.",
        b"\x80\x02c__torch__.os\nsystem\n)\x81}b.",
        b"\x80\x02c__torch__\nM\n)\x81}(X\x09\x00\x00\x00__class__\x88ub.",
        b"\x80\x02c__torch__\nM\n)\x81}(X\x07\x00\x00\x00forward\x88ub.",
        b"\x80\x02c__torch__\nM\n)\x81K\x01b.",
        b"\x80\x02c__torch__\nM\nX\x01\x00\x00\x00a\x85R.",
        b"\x80\x02" + b"(" * 100000 + b".",
        b"",
    ],
)
def test_pickles_call_nothing(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError):
        load(archive(data=data))
    assert not os.listdir(tmp_path)


def test_other_files() -> None:
    buffer = io.BytesIO()
    flambeau.save({"a": flambeau.ones(2)}, buffer)
    with pytest.raises(RuntimeError, match=r"constants\.pkl"):
        load(buffer.getvalue())
    with pytest.raises(RuntimeError, match="zip archive"):
        load(b"no archive")
    with pytest.raises(RuntimeError, match="empty"):
        load(b"")
    phone = zipfile.ZipFile(stream := io.BytesIO(), "w")
    with phone:
        for name in ("data.pkl", "bytecode.pkl", "constants.pkl", "version"):
            phone.writestr(f"archive/{name}", b"3")
    with pytest.raises(RuntimeError, match="lite interpreter"):
        load(stream.getvalue())


def test_an_endless_loop_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    module = load(archive("    while True:\n      x = torch.warn(x)\n    return x"))

    def interrupt(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("warnings.warn", interrupt)
    with pytest.raises(KeyboardInterrupt):
        module(flambeau.ones(2))


SOUND = archive(
    "    y = torch.add(x, 1)\n    for i in range(2):\n      y = torch.mul(y, i)\n    if torch.gt(torch.len(x), 1):\n"
    "      z = [y, x]\n    else:\n      z = [x]\n    return torch.stack(z, 0)"
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_damaged_archives(changes: list[tuple[int, int]]) -> None:
    content = bytearray(SOUND)
    for place, value in changes:
        content[place] = value
    with contextlib.suppress(*CLEAR):
        load(bytes(content))(flambeau.ones(2))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_damaged_records(data: st.DataObject) -> None:
    """Damage inside of a record, under a sound container."""
    body = data.draw(st.text("abxy()[]{}.,:= \n\"'0123456789torch_nself", max_size=60))
    pickled = bytearray(OBJECT)
    for _ in range(data.draw(st.integers(0, 4))):
        pickled[data.draw(st.integers(0, len(pickled) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(*CLEAR):
        load(archive(f"    return {body}", bytes(pickled)))(flambeau.ones(2))
