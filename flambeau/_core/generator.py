"""Generator: the stream of random bits of the CPU, the same stream as PyTorch's for the same seed.

The engine is mt19937. It makes 624 words at a time; this class keeps the current block of finished words and a
position in it, so that a small draw is a slice, and takes many blocks at once from the engine for a large one. The
engine always stands at the end of the current block, which is what makes `state_bytes` exact at every moment.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from .arrays.lazy_signs import content
from .device import CPU, usable_device
from .device import device as Device
from .modes import beside_the_ops
from .process.locks import new_reentrant_lock
from .random import c_library
from .random.mersenne import BLOCK, Mersenne, Words
from .tensor import Tensor

# NumPy's own names of these are in a module that would have to be imported.
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
LongWords = np.ndarray[Any, np.dtype[np.uint64]]
Floats = np.ndarray[Any, np.dtype[np.float32]]
Doubles = np.ndarray[Any, np.dtype[np.float64]]

DEFAULT_SEED = 67280421310721
_LOW_24_BITS = np.uint32(0xFFFFFF)
_LOW_21_BITS = np.uint32(0x1FFFFF)
_TWO_TO_MINUS_24 = np.float32(2.0**-24)

# The bytes that `get_state` shows. The words are stored in 64 bits each, and the two `normal` fields keep the second
# half of a Box-Muller pair until the next scalar draw asks for it.
_STATE_LAYOUT = np.dtype(
    {
        "names": ["seed", "left", "seeded", "next", "words", "normal", "has_normal", "normal32", "has_normal32"],
        "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", (BLOCK,)), "<f8", "<i4", "<f4", "u1"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040, 5048, 5052],
        "itemsize": 5056,
    }
)
STATE_SIZE = _STATE_LAYOUT.itemsize


def seed_to_uint64(seed: int) -> int:
    """The 64-bit pattern of `seed`; a negative seed counts down from 2**64."""
    if not -(2**63) <= seed < 2**64:
        raise ValueError(
            f"Overflow when unpacking long long: the seed {seed} is outside [-2**63, 2**64 - 1], take it modulo 2**64"
        )
    return seed % 2**64


_NO_WORDS: Words = np.empty(0, dtype=np.uint32)


class Generator:
    """A source of random numbers with its own state; every random function takes one as `generator=`.

    Args:
        device: where the numbers are drawn. Default: `"cpu"`.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> torch.rand(2, generator=generator)
        tensor([0.4963, 0.7682])
    """

    __slots__ = (
        "__weakref__",
        "_block",
        "_engine",
        "_lock",
        "_next_normal",
        "_next_normal32",
        "_position",
        "_seed",
        "_units",
    )

    def __new__(cls, device: Any = "cpu") -> Generator:
        if cls is Generator and Device(device).type == "cuda":
            from .random.philox import PhiloxGenerator

            try:
                usable_device(device)
            except AssertionError as error:
                raise RuntimeError(f"Cannot get a generator for device {device}: {error}") from None
            return object.__new__(PhiloxGenerator)
        return object.__new__(cls)

    def __init__(self, device: Any = "cpu") -> None:
        if Device(device).type != "cpu":
            raise RuntimeError(f"Cannot get a generator for device {device}: there is none for such devices")
        self._lock = new_reentrant_lock()
        self._start(DEFAULT_SEED)

    def _start(self, seed: int) -> None:
        """Begin the stream of `seed`; the engine is made at the first draw, since importing NumPy's takes time."""
        beside_the_ops("random numbers are seeded, or their state is looked at,")
        self._seed = seed
        self._engine: Mersenne | None = None
        self._block: Words | None = None
        self._units: Floats | None = None
        self._position = BLOCK
        self._next_normal: float | None = None
        self._next_normal32: float | None = None

    @property
    def device(self) -> Device:
        """The device whose random numbers this generator makes."""
        return CPU

    def manual_seed(self, seed: Any) -> Generator:
        """Start again from `seed`, any integer from -2**63 to 2**64 - 1; returns the generator."""
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        seed = seed_to_uint64(seed)
        with self._lock:
            self._start(seed)
        return self

    def seed(self) -> int:
        """Start again from a seed taken from the operating system, and return that seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        with self._lock:
            self._start(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed that the current stream began from."""
        beside_the_ops("random numbers are seeded, or their state is looked at,")
        return self._seed

    def clone_state(self) -> Generator:
        """A new generator that continues exactly as this one would."""
        clone = Generator()
        clone.set_state_bytes(self.state_bytes())
        return clone

    def get_offset(self) -> int:
        """The position in the streams that have one, which the CPU's has not."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> Generator:
        """Move to a position in the streams that have one, which the CPU's has not."""
        raise RuntimeError("CPU Generator does not use offset")

    def graphsafe_get_state(self) -> Generator:
        """The state as an object that CUDA graphs share; the CPU has none."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator: use clone_state()")

    def graphsafe_set_state(self, new_state: Generator) -> Generator:
        """Share the state of another generator, as CUDA graphs need it; the CPU cannot."""
        if not isinstance(new_state, Generator):
            raise TypeError(f"expected a Generator, but got {type(new_state).__name__}")
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator: use set_state(get_state())")

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_state, (self.state_bytes().tobytes(),)

    def __setstate__(self, state: tuple[Any, Any, Tensor]) -> None:
        self.set_state(state[2])  # as PyTorch pickles a generator: the seed, an offset, and the state

    # Draws ------------------------------------------------------------------------------------------------------------

    def draw32(self, count: int) -> Words:
        """The next `count` 32-bit words. The array may be a read-only view: do not write to it."""
        with self._lock:  # and `next_words`, written out: few numbers feel a call
            start = self._position
            stop = start + count
            if stop <= BLOCK and self._block is not None:
                self._position = stop
                return self._block[start:stop]
            return self._draw_across_blocks(count)

    def next_words(self, count: int) -> Words:
        """The next `count` 32-bit words, as `draw32` gives them; the caller holds the lock."""
        start = self._position
        stop = start + count
        if stop <= BLOCK and self._block is not None:
            self._position = stop
            return self._block[start:stop]
        return self._draw_across_blocks(count)

    def words_at_hand(self, count: int) -> Words:
        """The words that the next draws will give, which stay to be drawn: `count` of them, or more.

        It may be fewer where `count` is less than a block, but never fewer than 64: then those that are made already.
        Whoever looks ahead holds the lock until the words that were used are skipped.
        """
        made = BLOCK - self._position
        if self._block is not None and (count <= made or (made >= 64 and count < BLOCK)):
            return self._block[self._position :]
        if self._engine is None:
            self._engine = Mersenne(self._seed)
        rest = _NO_WORDS if self._block is None else self._block[self._position :]
        ahead = self._engine.words_ahead(-(-(count - len(rest)) // BLOCK))
        return np.concatenate((rest, ahead))

    def skip(self, count: int) -> None:
        """Go on as if the next `count` 32-bit words had been drawn; the lock is held."""
        stop = self._position + count
        if stop <= BLOCK and self._block is not None:
            self._position = stop
        else:
            self._draw_across_blocks(count)

    def draw64(self, count: int) -> LongWords:
        """The next `count` 64-bit words: each takes two 32-bit words, the high half first."""
        words = self.draw32(2 * count)
        return (words[0::2].astype(np.uint64) << np.uint64(32)) | words[1::2]

    def unit32(self, count: int) -> Floats:
        """`count` float32 numbers in [0, 1), multiples of 2**-24, in an array of their own."""
        with self._lock:
            start = self._position
            stop = start + count
            if stop <= BLOCK and self._block is not None:
                if self._units is None:
                    self._units = _unit32(self._block)
                self._position = stop
                return self._units[start:stop].copy()
            words = self._draw_across_blocks(count)
        return _unit32(words)

    def unit64(self, count: int) -> Doubles:
        """`count` float64 numbers in [0, 1), multiples of 2**-53, in an array of their own."""
        words = self.draw32(2 * count)
        units = (words[0::2] & _LOW_21_BITS).astype(np.float64)
        units *= 2.0**-21
        units += words[1::2] * np.float64(2.0**-53)
        return units

    def scalar_normals(self, count: int) -> Doubles:
        """`count` standard normal numbers, pair by pair; the second of a pair may wait here for the next call."""
        with self._lock:
            waiting = self._next_normal
            fresh = count - (waiting is not None)
            if count == 0 or fresh == 0:
                self._next_normal = waiting if count == 0 else None
                return np.array([waiting] if count else [], dtype=np.float64)
            pairs = (fresh + 1) // 2
            # Python's own functions are the quicker ones below about twenty numbers.
            samples = self._few_pairs(pairs) if pairs <= 10 else self._many_pairs(pairs)
            self._next_normal = float(samples[-1]) if fresh % 2 else None
        if waiting is not None:
            return np.concatenate(([waiting], samples[:fresh]))
        return np.asarray(samples[:fresh], dtype=np.float64)

    @contextlib.contextmanager
    def one_by_one(self) -> Iterator[OneByOne]:
        """Numbers for methods that find out while drawing how many they need."""
        with self._lock:
            ahead: list[Iterator[float]] = []
            source = OneByOne(itertools.chain.from_iterable(self._units_ahead(ahead)), self._next_normal)
            try:
                yield source
            finally:
                self._next_normal = source.waiting
                if ahead:
                    self._position -= 2 * operator.length_hint(ahead[0])

    def _units_ahead(self, ahead: list[Iterator[float]]) -> Iterator[Iterator[float]]:
        """The numbers of `unit64` that the current block still holds, again and again; `ahead` has the last ones."""
        while True:
            room = 0 if self._block is None else (BLOCK - self._position) // 2
            ahead[:] = [iter(self.unit64(room or 1).tolist())]
            yield ahead[0]

    def _few_pairs(self, pairs: int) -> list[float]:
        words = iter(self.draw32(4 * pairs).tolist())
        samples: list[float] = []
        for angle_high, angle_low, length_high, length_low in zip(words, words, words, words, strict=True):
            theta = 2.0 * math.pi * _unit64(angle_high, angle_low)
            length = math.sqrt(-2.0 * math.log1p(-_unit64(length_high, length_low)))
            samples += (length * math.cos(theta), length * math.sin(theta))
        return samples

    def _many_pairs(self, pairs: int) -> Doubles:
        units = self.unit64(2 * pairs)
        theta = units[0::2] * (2.0 * math.pi)
        length = np.sqrt(c_library.log1p(-units[1::2]) * -2.0)
        units[0::2] = length * c_library.cos(theta)
        units[1::2] = length * c_library.sin(theta)
        return units

    def _draw_across_blocks(self, count: int) -> Words:
        """A draw that the current block cannot serve alone; the caller holds the lock."""
        if count == 0:
            return np.empty(0, dtype=np.uint32)
        engine = self._engine
        if engine is None:
            engine = self._engine = Mersenne(self._seed)
        rest = None if self._block is None else self._block[self._position :]
        missing = count - (0 if rest is None else len(rest))
        blocks = max(1, -(-missing // BLOCK))
        words = engine.words(blocks)
        self._use_block(words[-BLOCK:].copy() if blocks > 1 else words, missing - (blocks - 1) * BLOCK)
        if rest is None or len(rest) == 0:
            return words[:missing]
        return np.concatenate((rest, words[:missing]))

    def _use_block(self, block: Words, position: int) -> None:
        block.flags.writeable = False
        self._block = block
        self._units = None
        self._position = position

    # State ------------------------------------------------------------------------------------------------------------

    def state_bytes(self) -> Bytes:
        """The whole state as 5056 bytes, interchangeable with PyTorch's `get_state()`."""
        beside_the_ops("random numbers are seeded, or their state is looked at,")
        record = np.zeros((), dtype=_STATE_LAYOUT)
        with self._lock:
            if self._engine is None:
                self._engine = Mersenne(self._seed)
            record["seed"] = self._seed
            record["seeded"] = 1
            record["words"] = self._engine.state
            untouched = self._block is None
            record["left"] = 1 if untouched else BLOCK + 1 - self._position
            record["next"] = 0 if untouched else self._position
            if self._next_normal is not None:
                record["normal"], record["has_normal"] = self._next_normal, 1
            if self._next_normal32 is not None:
                record["normal32"], record["has_normal32"] = self._next_normal32, 1
        return np.frombuffer(record.tobytes(), dtype=np.uint8).copy()

    def get_state(self) -> Tensor:
        """The whole state as a tensor of bytes."""
        from .tensor import wrap

        return wrap(self.state_bytes(), CPU)

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from a state that `get_state` gave."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        self.set_state_bytes(content(new_state))
        return self

    def set_state_bytes(self, state: Bytes) -> None:
        """Continue from a state that `state_bytes` or PyTorch's `get_state()` gave."""
        beside_the_ops("random numbers are seeded, or their state is looked at,")
        if state.dtype != np.uint8:
            raise TypeError(f"RNG state must be a torch.ByteTensor, but its elements are {state.dtype.name}")
        if state.size != STATE_SIZE:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_SIZE} "
                f"but found the input RNG state size to be {state.size}"
            )
        record = np.frombuffer(state.tobytes(), dtype=_STATE_LAYOUT)[0]
        left, position = int(record["left"]), int(record["next"])
        follows_on = left == 1 or left + position == BLOCK + 1
        if not record["seeded"] or not 1 <= left <= BLOCK or position > BLOCK or not follows_on:
            raise RuntimeError(
                f"Invalid mt19937 state: seeded={record['seeded']}, left={left}, next={position}; "
                "pass the unchanged result of get_state()"
            )
        words = record["words"].astype(np.uint32)
        engine = Mersenne(0)
        engine.state = words
        with self._lock:
            self._start(int(record["seed"]))
            self._engine = engine
            if position > 0:
                self._use_block(_tempered(words), BLOCK + 1 - left)
            if record["has_normal"]:
                self._next_normal = float(record["normal"])
            if record["has_normal32"]:
                self._next_normal32 = float(record["normal32"])


class OneByOne:
    """Single draws from a generator: `next(units)` is a number in [0, 1), `normal()` a standard normal one."""

    __slots__ = ("units", "waiting")

    def __init__(self, units: Iterator[float], waiting: float | None) -> None:
        self.units = units
        self.waiting = waiting

    def normal(self) -> float:
        """A standard normal number: the second of the last pair, or the first of a new one."""
        if self.waiting is not None:
            sample, self.waiting = self.waiting, None
            return sample
        theta = 2.0 * math.pi * next(self.units)
        length = math.sqrt(-2.0 * math.log1p(-next(self.units)))
        self.waiting = length * math.sin(theta)
        return length * math.cos(theta)


def _from_state(state: bytes) -> Generator:
    generator = Generator()
    generator.set_state_bytes(np.frombuffer(state, dtype=np.uint8))
    return generator


def _unit32(words: Words) -> Floats:
    units = (words & _LOW_24_BITS).astype(np.float32)
    units *= _TWO_TO_MINUS_24
    return units


def _unit64(high: int, low: int) -> float:
    return ((high & 0x1FFFFF) << 32 | low) * 2.0**-53


def _tempered(words: Words) -> Words:
    """The engine's output function on a block of its state words."""
    block = words ^ (words >> np.uint32(11))
    block ^= (block << np.uint32(7)) & np.uint32(0x9D2C5680)
    block ^= (block << np.uint32(15)) & np.uint32(0xEFC60000)
    block ^= block >> np.uint32(18)
    return block


default_generator = Generator()
"""The generator of every random function that is given none; its seed differs from process to process."""
default_generator.seed()
