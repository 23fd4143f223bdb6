"""A cache of machine code that somebody has damaged: nothing fails, nothing hangs, nothing foreign is read."""

from __future__ import annotations

import hashlib
import marshal
import os
import random
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import llvmlite.ir as ir
import pytest

from flambeau._backends.cpu.runtime import autotune as choices
from flambeau._codegen.machine import bytecode, cache
from flambeau._codegen.machine.engine import engine

Damage = Callable[[Path], object]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "code"))
    return tmp_path / "code"


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link(target: str) -> Damage:
    def damage(path: Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return damage


def _hole(path: Path) -> None:
    os.truncate(path, 1 << 40)


DAMAGES: dict[str, Damage] = {
    "a pipe": _pipe,
    "a folder": _folder,
    "a device": _link("/dev/zero"),
    "a link to itself": _link("name.o"),
    "a link to nothing": _link("nothing"),
    "a terabyte of zeros": _hole,
    "empty": lambda path: path.write_bytes(b""),
    "others may write to it": lambda path: path.chmod(0o622),
    "others may write to its folder": lambda path: path.parent.chmod(0o777),
    "its group may write to its folder": lambda path: path.parent.chmod(0o770),
    "another one's content": lambda path: path.write_bytes((path.parent / "other.o").read_bytes()),
    "a checksum of the content alone": lambda path: path.write_bytes(hashlib.sha256(b"x").digest() + b"x"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_as_if_it_were_not_there(folder: Path, damage: Damage) -> None:
    cache.store("other", b"foreign")
    cache.store("name", b"code")
    damage(folder / "name.o")
    found: list[bytes | None] = []
    reader = threading.Thread(target=lambda: found.append(cache.load("name")), daemon=True)
    reader.start()
    reader.join(20)
    assert found == [None]  # and within the time: to open a pipe that nobody writes to takes for ever
    assert cache.made_once("name", lambda: b"anew", bytes.upper) == b"ANEW"
    assert set(cache.sizes()) >= {len(b"foreign") + 32}
    cache.clear()


def test_content_that_its_reader_refuses_is_made_anew() -> None:
    cache.store("name", b"\xff")
    assert cache.made_once("name", lambda: b"good", bytes.decode) == "good"
    assert cache.load("name") == b"good"
    with pytest.raises(UnicodeDecodeError):  # what was made just now is no fault of the disk
        cache.made_once("other", lambda: b"\xff", bytes.decode)


def test_machine_code_that_does_not_link_is_compiled_anew() -> None:
    own = engine()
    digest = own.digest_of("damaged", ())

    def write() -> ir.Module:
        module = own.new_module("damaged")
        function = ir.Function(module, ir.FunctionType(ir.IntType(64), ()), "damaged")
        ir.IRBuilder(function.append_basic_block()).ret(ir.IntType(64)(7))
        return module

    for wrong in (b"", b"no object file", b"\x7fELF" + bytes(100)):
        cache.store(digest, wrong)
        assert own.load("damaged", (), write, ["damaged"])["damaged"]
        assert len(cache.load(digest) or b"") > 100
    own.handed_over[digest] = b"no object file"
    assert own.load("damaged", (), write, ["damaged"])["damaged"]
    assert digest not in own.handed_over


def _give(content: bytes, name: str) -> bytes:
    return content


def test_other_readers_take_what_is_theirs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    source = [("<file>", "answer = 42\n" + "# long\n" * 100)]
    for wrong in (b"", b"\0garbage", marshal.dumps(7), marshal.dumps(()), marshal.dumps(("text",))):
        monkeypatch.setattr(cache, "load", partial(_give, wrong))
        scope: dict[str, object] = {}
        exec(bytecode.compiled_sources(source)[0], scope)
        assert scope["answer"] == 42
        monkeypatch.setattr(choices, "_known", {})
        monkeypatch.setattr(choices, "_timed", lambda ways: "one")
        assert choices.quickest("what", wrong, {"one": lambda: list, "two": lambda: list}) == "one"


@pytest.mark.parametrize("seed", range(20))
def test_random_damage(folder: Path, seed: int) -> None:
    draw = random.Random(seed)
    contents = {f"name{number}": draw.randbytes(draw.choice((0, 1, 31, 32, 33, 5000))) for number in range(8)}
    for _ in range(30):
        for name, content in contents.items():
            assert cache.made_once(name, partial(bytes, content), bytes) == content
        paths = [path for path in folder.iterdir() if path.is_file() and path.suffix == ".o"]
        for path in draw.sample(paths, draw.randrange(len(paths) + 1)):
            _damage_at_random(draw, path, draw.choice(paths))
        for name, content in contents.items():
            assert cache.load(name) in (None, content)


def _damage_at_random(draw: random.Random, path: Path, other: Path) -> None:
    content = bytearray(path.read_bytes()) if path.is_file() else bytearray()
    match draw.randrange(6):
        case 0:
            path.write_bytes(content[: draw.randrange(len(content) + 1)])
        case 1:
            path.write_bytes(content + draw.randbytes(draw.randrange(1, 50)))
        case 2 if content:
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            path.write_bytes(content)
        case 3 if path != other and other.exists():
            os.replace(other, path)
        case 4:
            path.unlink(missing_ok=True)
            os.mkfifo(path)
            os.unlink(path)
        case _:
            path.unlink(missing_ok=True)


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLAMBEAU_CACHE_DIR")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    cache.store("name", b"code")
    assert cache.load("name") is None
    assert cache.clear() == 0
