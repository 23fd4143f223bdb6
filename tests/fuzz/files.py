"""Writes random damage to files: each reader loads them, or refuses them by an error that it documents."""

from __future__ import annotations

import functools
import time
import warnings
from typing import Any

from tests.serialization.fuzzing import CANARY, LONGEST, REFUSALS, corpus

from .program import Failure, Program, source
from .writer import Writer

_NUMBERS = (0, 1, 127, 255, 2**15, 2**31 - 1, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)


@functools.cache
def _files() -> dict[str, tuple[Any, bytes]]:
    return {name: (read, content) for name, read, content in corpus()}


def given(name: str) -> bytearray:
    """The bytes of a valid file."""
    return bytearray(_files()[name][1])


def read(name: str, content: bytearray) -> str:
    """What a reader does with a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _files()[name][0](bytes(content))
        except REFUSALS as refused:
            return f"refuses: {type(refused).__name__}"
        except ValueError as refused:
            if not str(refused).startswith("Unknown endianness type"):  # PyTorch has a ValueError for this one
                raise
            return "refuses: ValueError"
    return "loads"


class _Damage(Writer):
    def write(self) -> Program:
        name = self.pick(list(_files()))
        self.line("from tests.fuzz.files import given, read")
        self.line(f"data = given({name!r})")
        size = len(given(name))
        for _ in range(self.pick((1, 1, 1, 2, 3, 8))):
            self.line(self.change(self.random.randrange(size), self.random.randrange(size)))
        self.line(f"see(read({name!r}, data))")
        return self.program()

    def change(self, at: int, other: int) -> str:
        count = self.random.randrange(1, 40)
        bit = 1 << self.random.randrange(8)
        number = self.pick(_NUMBERS).to_bytes(8, "little")[: self.pick((1, 2, 4, 8))]
        return self.pick(
            (
                f"data[{at}:{at + 1}] = bytes([{self.random.randrange(256)}])",
                f"data[{at}:{at + len(number)}] = {number!r}",
                f"del data[{at}:{at + count}]",
                f"data[{at}:{at}] = data[{other}:{other + count}]",
                f"data[{at}:{at + count}] = data[{other}:{other + count}]",
                f"del data[{at}:]",
                f"data[{at}:{at + 1}] = bytes([each ^ {bit} for each in data[{at}:{at + 1}]])",
            )
        )


def write(seed: int) -> Program:
    """The program of this seed, always the same."""
    return _Damage(seed).write()


def judge(program: Program) -> Failure | None:
    """An error that the reader does not document, a call of what the file names, or a long wait."""
    CANARY.clear()
    began = time.process_time()
    try:
        exec(compile(source(program), "<program>", "exec"), {"see": lambda each: None})
    except Exception as error:
        return Failure("a reader and its promise", f"raises {type(error).__name__}", str(error)[:300])
    if CANARY:
        return Failure("a reader and its promise", "calls what the file names", "")
    passed = time.process_time() - began
    return Failure("a reader and its promise", "takes long", f"{passed:.1f} s") if passed > LONGEST else None


def alone(program: Program) -> None:
    """Judge a program: PyTorch reads no file here."""
    judge(program)
