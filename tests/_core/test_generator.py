"""Generator against PyTorch's: seeds, the stream of words, and states that either can continue from."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
import torch as pytorch

from flambeau._core.generator import Generator, default_generator

SEEDS = [0, 1, 42, 2**32 - 1, 2**32, 12345678901234, 2**63, 2**64 - 1, -1, -5, -(2**63)]


def twins(seed: int = 7) -> tuple[Generator, pytorch.Generator]:
    return Generator().manual_seed(seed), pytorch.Generator().manual_seed(seed)


def assert_same_state(ours: Generator, theirs: pytorch.Generator) -> None:
    np.testing.assert_array_equal(ours.state_bytes(), theirs.get_state().numpy())


def uniforms(theirs: pytorch.Generator, count: int) -> Any:
    return pytorch.rand(count, generator=theirs).numpy()


@pytest.mark.parametrize("seed", SEEDS)
def test_seed_gives_the_same_stream(seed: int) -> None:
    ours, theirs = twins(seed)
    assert ours.initial_seed() == theirs.initial_seed()
    assert_same_state(ours, theirs)
    np.testing.assert_array_equal(ours.unit32(1500), uniforms(theirs, 1500))
    assert_same_state(ours, theirs)


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1, 1.5, "3", None, True])
def test_bad_seed(seed: Any) -> None:
    with pytest.raises((RuntimeError, ValueError)) as expected:
        pytorch.Generator().manual_seed(seed)
    with pytest.raises(type(expected.value), match=str(expected.value)):
        Generator().manual_seed(seed)


def test_new_generators_are_alike_and_the_default_one_is_not() -> None:
    assert Generator().initial_seed() == pytorch.Generator().initial_seed() == Generator().initial_seed()
    assert default_generator.initial_seed() != Generator().initial_seed()


def test_device() -> None:
    assert str(Generator().device) == "cpu"
    assert str(Generator("cpu:0").device) == str(pytorch.Generator("cpu:0").device)
    assert str(Generator(device=Generator().device).device) == "cpu"
    with pytest.raises(RuntimeError, match="meta"):
        Generator("meta")


def test_manual_seed_returns_the_generator_and_seed_a_new_seed() -> None:
    generator = Generator()
    assert generator.manual_seed(3) is generator
    first, second = generator.seed(), generator.seed()
    assert first != second
    assert generator.initial_seed() == second
    drawn = generator.unit32(3)
    np.testing.assert_array_equal(drawn, Generator().manual_seed(second).unit32(3))


def test_reseeding_forgets_the_waiting_normal_number() -> None:
    ours, theirs = twins()
    ours.scalar_normals(1)
    pytorch.randn(1, generator=theirs)
    ours.manual_seed(8)
    theirs.manual_seed(8)
    assert_same_state(ours, theirs)
    np.testing.assert_array_equal(
        ours.scalar_normals(3), pytorch.randn(3, generator=theirs, dtype=pytorch.float64).numpy()
    )


# Sizes around the block of 624 words, taken in an order that stops at every kind of place in it.
@pytest.mark.parametrize("counts", [(3, 0, 5, 616, 1), (624, 1, 623), (625, 1247, 1), (0, 1), (1, 0, 100_003, 2)])
def test_mixed_draws_keep_the_position(counts: tuple[int, ...]) -> None:
    ours, theirs = twins()
    for count in counts:
        np.testing.assert_array_equal(ours.unit32(count), uniforms(theirs, count))
        assert_same_state(ours, theirs)
        double = pytorch.rand(count, generator=theirs, dtype=pytorch.float64)
        np.testing.assert_array_equal(ours.unit64(count), double.numpy())
        assert_same_state(ours, theirs)
        strided = pytorch.empty(2 * count, dtype=pytorch.float64)[::2].normal_(generator=theirs)
        np.testing.assert_array_equal(ours.scalar_normals(count), strided.numpy())
        assert_same_state(ours, theirs)


@pytest.mark.parametrize("count", [0, 1, 3, 15, 40])
def test_scalar_normals_one_by_one_or_together(count: int) -> None:
    together, singly = Generator().manual_seed(1), Generator().manual_seed(1)
    expected = [float(singly.scalar_normals(1)[0]) for _ in range(count + 4)]
    found = [*together.scalar_normals(1), *together.scalar_normals(count), *together.scalar_normals(3)]
    # The C library and NumPy may differ in the last place.
    np.testing.assert_allclose(found, expected, rtol=2**-51)


@pytest.mark.parametrize("drawn", [0, 1, 5, 623, 624, 625, 2000])
@pytest.mark.parametrize("normals", [0, 1, 2])
def test_states_travel_both_ways(drawn: int, normals: int) -> None:
    ours, theirs = twins()
    uniforms(theirs, drawn)
    pytorch.randn(normals, generator=theirs)
    ours.set_state_bytes(theirs.get_state().numpy())
    assert_same_state(ours, theirs)
    assert ours.initial_seed() == 7
    back = pytorch.Generator()
    back.set_state(pytorch.from_numpy(ours.state_bytes()))
    np.testing.assert_array_equal(
        ours.scalar_normals(3), pytorch.randn(3, generator=back, dtype=pytorch.float64).numpy()
    )
    np.testing.assert_array_equal(ours.unit32(1300), uniforms(back, 1300))
    assert_same_state(ours, back)


def test_waiting_float_normal_survives_a_round_trip() -> None:
    state = pytorch.Generator().manual_seed(1).get_state().numpy()
    state[5048:5052] = np.frombuffer(np.float32(0.75).tobytes(), np.uint8)
    state[5052] = 1
    generator = Generator()
    generator.set_state_bytes(state)
    np.testing.assert_array_equal(generator.state_bytes(), state)


def damaged(position: int, value: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    state = Generator().manual_seed(5).state_bytes()
    state[position] = value
    return state


@pytest.mark.parametrize(
    "state",
    [
        np.zeros(5056, np.uint8),
        Generator().state_bytes()[:-1],
        np.zeros(10112, np.uint8),
        np.zeros(5056, np.float32),
        damaged(8, 0),  # no word left
        damaged(11, 255),  # a negative number of words left
        damaged(12, 0),  # never seeded
        damaged(17, 3),  # beyond the block
    ],
)
def test_bad_states_change_nothing(state: Any) -> None:
    with pytest.raises((RuntimeError, TypeError)) as expected:
        pytorch.Generator().set_state(pytorch.from_numpy(state))
    generator = Generator().manual_seed(3)
    before = generator.state_bytes()
    with pytest.raises(type(expected.value), match=str(expected.value)):
        generator.set_state_bytes(state)
    np.testing.assert_array_equal(generator.state_bytes(), before)


def test_state_that_points_outside_its_block_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        Generator().set_state_bytes(damaged(8, 100))  # 100 words left from position 0


@pytest.mark.parametrize(
    "duplicate", [Generator.clone_state, copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))]
)
def test_copies_continue_alike_and_apart(duplicate: Any) -> None:
    generator = Generator().manual_seed(9)
    generator.unit32(100)
    generator.scalar_normals(1)
    twin = duplicate(generator)
    assert twin is not generator
    np.testing.assert_array_equal(twin.state_bytes(), generator.state_bytes())
    expected = generator.unit32(700)
    np.testing.assert_array_equal(twin.unit32(700), expected)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("get_offset", ()), ("set_offset", (3,)), ("graphsafe_get_state", ()), ("graphsafe_set_state", (None,))],
)
def test_what_only_other_devices_have(name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises((RuntimeError, TypeError)) as expected:
        getattr(pytorch.Generator(), name)(*arguments)
    with pytest.raises(type(expected.value), match=str(expected.value)):
        getattr(Generator(), name)(*arguments)
    if name == "graphsafe_set_state":
        with pytest.raises(NotImplementedError, match="graphsafe_set_state is not supported"):
            Generator().graphsafe_set_state(Generator())


def test_drawn_words_cannot_be_overwritten() -> None:
    generator = Generator().manual_seed(9)
    generator.draw32(1)
    with pytest.raises(ValueError, match="read-only"):
        generator.draw32(4)[0] = 0
    own = generator.unit32(4)
    own[:] = 0.0  # an array of the caller's own
    np.testing.assert_array_equal(generator.unit32(3), Generator().manual_seed(9).unit32(12)[9:])


def test_threads_share_one_stream_without_loss() -> None:
    generator = Generator().manual_seed(4)
    draws, rounds, workers = 37, 60, 4
    collected: list[list[tuple[int, ...]]] = [[] for _ in range(workers)]

    def work(own: list[tuple[int, ...]]) -> None:
        own.extend(tuple(generator.draw32(draws).tolist()) for _ in range(rounds))

    threads = [threading.Thread(target=work, args=(own,)) for own in collected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stream = Generator().manual_seed(4).draw32(draws * rounds * workers).reshape(-1, draws)
    assert {draw for own in collected for draw in own} == {tuple(draw) for draw in stream.tolist()}


def test_import_and_seeding_do_not_load_numpy_random() -> None:
    program = (
        "import sys; from flambeau._core.generator import Generator; "
        "Generator().manual_seed(1); sys.exit('numpy.random' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
