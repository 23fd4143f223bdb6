"""`utils.data.datapipes`: every step beside PyTorch's, the rule of one iterator, shares, seeds, and loaders."""

from __future__ import annotations

import importlib
import io
import pickle
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy
import pytest

import flambeau
from tests.support.differential import differential, outcome, warned


def _pipes(torch: Any) -> tuple[Any, Any]:
    name = f"{torch.__name__}.utils.data.datapipes"
    return importlib.import_module(f"{name}.iter"), importlib.import_module(f"{name}.map")


def _is_even(number: int) -> bool:
    return number % 2 == 0


def _third(number: int) -> int:
    return number % 3


def _third_or_none(number: int) -> int | None:
    return None if number == 3 else number % 2


def _add(left: int, right: int) -> int:
    return left + right


def _twice(number: int) -> int:
    return number * 2


def _numbers(torch: Any, count: int = 10) -> Any:
    return _pipes(torch)[0].IterableWrapper(range(count))


@differential
def test_functions_of_samples_and_columns(torch: Any) -> Any:
    steps, _ = _pipes(torch)
    rows = steps.IterableWrapper([(1, 2, 3), (4, 5, 6)])
    return (
        list(_numbers(torch, 3).map(_twice)),
        list(rows.map(_twice, 0)),
        list(rows.map(_twice, 0, 2)),
        list(rows.map(_twice, 0, -1)),
        list(rows.map(_add, (0, 1))),
        list(rows.map(_add, (0, 1), 2)),
        list(rows.map(_add, input_col=[0, 1], output_col=[2])),
        list(steps.IterableWrapper([{"a": 1, "b": 2}]).map(_twice, "a", "c")),
        list(steps.IterableWrapper([[1, 2]]).map(_twice, 1)),
        outcome(lambda: rows.map(_twice, None, 1), "must be None when"),
        outcome(lambda: rows.map(_twice, 0, [1, 2]), "single-element"),
        outcome(lambda: rows.map(_add, 0), "takes 2 positional parameters"),
        outcome(lambda: rows.map(_twice, (0, 1)), "takes 1 parameters"),
        list(_numbers(torch).filter(_is_even)),
        list(rows.filter(_is_even, input_col=1)),
        outcome(lambda: list(_numbers(torch).filter(_twice)), "Boolean output is required"),
        outcome(lambda: len(_numbers(torch).filter(_is_even))),
        len(rows.map(_twice, 0)),
        warned(lambda: list(_numbers(torch, 2).map(lambda number: -number)), "Local function is not supported"),
        list(_numbers(torch, 4).batch(2).collate()),
        list(_numbers(torch, 4).batch(2).collate(sum)),
        list(_numbers(torch, 4).batch(2).collate(collate_fn=sum)),
    )


@differential
def test_batches_and_groups(torch: Any) -> Any:
    numbers = _numbers(torch)
    chunk = torch.utils.data.DataChunk([1, 2])
    groups = [
        list(numbers.groupby(_third, **options))
        for options in (
            {},
            {"keep_key": True},
            {"group_size": 2},
            {"buffer_size": 4, "group_size": 3, "guaranteed_group_size": 2},
            {"buffer_size": 4, "group_size": 4, "guaranteed_group_size": 2, "drop_remaining": True},
        )
    ]
    return (
        list(numbers.batch(3)),
        len(numbers.batch(3)),
        list(numbers.batch(3, drop_last=True)),
        len(numbers.batch(3, drop_last=True)),
        list(numbers.batch(3).batch(2)),
        (str(chunk), chunk.as_str("  "), list(chunk.raw_iterator())),
        list(numbers.batch(3).batch(2).unbatch()),
        list(numbers.batch(3).batch(2).unbatch(2)),
        list(numbers.batch(3).batch(2).unbatch(unbatch_level=-1)),
        outcome(lambda: list(numbers.batch(3).unbatch(3)), "exceeds the depth"),
        outcome(lambda: list(numbers.batch(3).unbatch(-2)), "must be -1 or >= 0"),
        outcome(lambda: numbers.batch(0), "larger than 0"),
        groups,
        outcome(lambda: list(numbers.groupby(_twice, buffer_size=3, group_size=2)), "Failed to group items"),
        outcome(lambda: numbers.groupby(_third, group_size=0), "group_size must be > 0"),
        outcome(lambda: numbers.groupby(_third, guaranteed_group_size=2), "guaranteed_group_size must be"),
        outcome(lambda: numbers.groupby(_third, group_size=2, guaranteed_group_size=3), "guaranteed_group_size must"),
    )


@differential
def test_several_pipes(torch: Any) -> Any:
    steps, _ = _pipes(torch)
    letters = steps.IterableWrapper("abcd")
    first, second = _numbers(torch, 5).fork(2)
    lists = steps.IterableWrapper([[1], [2]])
    shared, own = lists.fork(2), lists.fork(2, copy="deep")
    same = [left is right for left, right in zip(*shared, strict=True)]
    apart = [left is right for left, right in zip(*own, strict=True)]
    even, odd = _numbers(torch, 6).demux(2, _is_even)
    some = _numbers(torch, 6).demux(2, _third_or_none, drop_none=True)
    all_of_them = _numbers(torch, 6).demux(2, _third_or_none)
    return (
        list(_numbers(torch, 3).concat(letters)),
        len(_numbers(torch, 3).concat(letters)),
        list(_numbers(torch, 3).zip(letters)),
        len(_numbers(torch, 3).zip(letters)),
        list(_numbers(torch, 3).mux(letters, _numbers(torch, 2))),
        len(_numbers(torch, 3).mux(letters)),
        outcome(lambda: steps.Concater(), "at least one DataPipe"),
        outcome(lambda: steps.Concater(1), "Expected all inputs"),
        outcome(lambda: steps.Zipper(1), "All inputs are required"),
        list(zip(first, second, strict=True)),
        len(first),
        same,
        apart,
        outcome(lambda: list(_numbers(torch, 5).fork(2, buffer_size=2)[0]), "buffer size 2 is insufficient"),
        outcome(lambda: _numbers(torch).fork(0), "Expected `num_instances` larger than 0"),
        outcome(lambda: _numbers(torch).fork(2, copy="x"), "Unknown copy method"),
        warned(lambda: len(_numbers(torch).fork(2, buffer_size=-1)), "Unlimited buffer size"),
        type(_numbers(torch).fork(1)).__name__,
        (list(even), list(odd)),
        [list(each) for each in some],
        outcome(lambda: [list(each) for each in all_of_them], "should be between 0 and 1"),
        outcome(lambda: list(_numbers(torch).demux(2, _is_even, buffer_size=1)[0]), "buffer overflow"),
        outcome(lambda: len(even)),
    )


@differential
def test_one_iterator_at_a_time(torch: Any) -> Any:
    numbers = _numbers(torch)
    mapped = numbers.map(_twice)
    first = iter(mapped)
    next(first)
    other = iter(numbers)
    fork = _numbers(torch, 5).fork(2)
    left, right = iter(fork[0]), iter(fork[1])
    next(left)
    next(right)
    again = warned(lambda: next(iter(fork[0])), "not exhausted")

    class Counts(torch.utils.data.IterDataPipe):  # type: ignore[misc]
        def __init__(self) -> None:
            self.count = 0

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> int:
            if self.count == 3:
                raise StopIteration
            self.count += 1
            return self.count

        def reset(self) -> None:
            self.count = 0

    class Fails(torch.utils.data.IterDataPipe):  # type: ignore[misc]
        def __iter__(self) -> Any:
            yield 1
            raise ValueError("out of milk")

    counts = Counts()
    return (
        next(other),
        outcome(lambda: next(first), "This iterator has been invalidated"),
        outcome(lambda: next(right), "This iterator has been invalidated"),
        again,
        [list(counts), list(counts)],
        outcome(lambda: list(Fails().map(_twice)), "out of milk\nThis exception is thrown by __iter__ of Fails()"),
        outcome(lambda: numbers.no_such_step, "has no attribute 'no_such_step"),
        (repr(numbers), str(mapped), "batch" in dir(numbers)),
        outcome(lambda: list(torch.utils.data.IterDataPipe())),
        list(pickle.loads(pickle.dumps(mapped.batch(2)))) if torch is flambeau else list(mapped.batch(2)),
    )


@differential
def test_what_is_wrapped(torch: Any) -> Any:
    steps, maps = _pipes(torch)
    lists = [[1]]
    next(iter(steps.IterableWrapper(lists))).append(2)
    next(iter(steps.IterableWrapper(lists, deepcopy=False))).append(3)
    stream = steps.IterableWrapper(number for number in range(3))
    return (
        lists,
        warned(lambda: list(stream), "can not be deepcopied"),
        outcome(lambda: len(stream), "valid length"),
        len(maps.SequenceWrapper({"a": 1})),
        maps.SequenceWrapper({"a": 1})["a"],
        list(steps.Sampler(_numbers(torch, 4))),
        len(steps.Sampler(_numbers(torch, 4))),
        outcome(lambda: steps.Sampler(_numbers(torch).filter(_is_even)), "implemented `__len__`"),
    )


@differential
def test_pipes_that_are_read_by_index(torch: Any) -> Any:
    _, maps = _pipes(torch)
    numbers = maps.SequenceWrapper(range(10))
    letters = maps.SequenceWrapper("ab")
    batches, both = numbers.batch(3), numbers.zip(letters)
    chain = numbers.concat(letters)
    callable_module = importlib.import_module(f"{torch.__name__}.utils.data.datapipes.map.callable")
    torch.manual_seed(4)
    return (
        [batches[place] for place in range(4)],
        len(batches),
        outcome(lambda: batches[4], "out of bound"),
        outcome(lambda: numbers.batch(3, drop_last=True)[3], "out of bound"),
        (both[1], len(both)),
        outcome(lambda: both[2], "out of range for one of the input"),
        (chain[3], chain[11], len(chain)),
        outcome(lambda: chain[12], "out of range"),
        list(numbers.map(_twice)),
        maps.Mapper(numbers, callable_module.default_fn)[3],
        outcome(lambda: maps.Concater(1), "Expected all inputs"),
        outcome(lambda: maps.Zipper(), "at least one DataPipe"),
        list(numbers.shuffle()),
        list(numbers.shuffle().set_seed(5)),
        list(numbers.shuffle().set_shuffle(False)),
        list(maps.SequenceWrapper({"a": 1, "b": 2, "c": 3}).shuffle(indices=["a", "b", "c"]).set_seed(5)),
        repr(numbers),
    )


@differential
def test_shuffling(torch: Any) -> Any:
    torch.manual_seed(3)
    return (
        list(_numbers(torch).shuffle()),
        list(_numbers(torch).shuffle(buffer_size=3)),
        list(_numbers(torch).shuffle().set_seed(7)),
        list(_numbers(torch).shuffle().set_shuffle(False)),
        list(_numbers(torch).batch(2).shuffle(unbatch_level=1)),
        outcome(lambda: _numbers(torch).shuffle(buffer_size=0), "should be larger than 0"),
        len(_numbers(torch).shuffle()),
        torch.rand(2),
    )


@differential
def test_shares_and_settings(torch: Any) -> Any:
    data = torch.utils.data
    graph = importlib.import_module(f"{torch.__name__}.utils.data.graph")
    settings = importlib.import_module(f"{torch.__name__}.utils.data.graph_settings")
    sharding = importlib.import_module(f"{torch.__name__}.utils.data.datapipes.iter.sharding")
    older = importlib.import_module(f"{torch.__name__}.utils.data.backward_compatibility")
    kinds = sharding.SHARDING_PRIORITIES
    share = _numbers(torch).sharding_filter()
    share.apply_sharding(3, 1)
    nested = _numbers(torch, 12).sharding_filter()
    nested.apply_sharding(2, 1, kinds.DISTRIBUTED)
    nested.apply_sharding(3, 2, kinds.MULTIPROCESSING)
    both = _numbers(torch).sharding_filter().map(_twice)
    settings.apply_sharding(both, 4, 3)
    shuffled = _numbers(torch).shuffle().map(_twice)
    generator = torch.Generator().manual_seed(9)
    settings.apply_random_seed(shuffled, generator)
    seeded = list(shuffled)
    settings.apply_shuffle_settings(shuffled, shuffle=False)
    parts = graph.traverse_dps(both.zip(_numbers(torch)))
    return (
        (list(share), len(share)),
        list(nested),
        [int(kind) for kind in kinds],
        outcome(lambda: share.apply_sharding(2, 2), "should be smaller than num_of_instances"),
        outcome(lambda: share.apply_sharding(2, 1, kinds.DISTRIBUTED), "cannot mix"),
        list(both),
        outcome(lambda: settings.apply_sharding(both.sharding_filter(), 2, 1), "Sharding twice"),
        seeded,
        list(shuffled),
        sorted(type(pipe).__name__ for pipe in settings.get_all_graph_pipes(parts)),
        [type(pipe).__name__ for pipe, _ in parts.values()],
        warned(lambda: len(graph.traverse(both)), "`traverse` function is deprecated"),
        warned(lambda: type(settings.apply_shuffle_settings(_numbers(torch), shuffle=True)).__name__, "Adding one"),
        warned(lambda: type(settings.apply_shuffle_seed(shuffled, generator)).__name__, "`apply_shuffle_seed` is"),
        warned(lambda: older.worker_init_fn(0), "worker_init_fn` is deprecated"),
        outcome(lambda: graph.traverse_dps([1]), "Expected `IterDataPipe` or `MapDataPipe`"),
        issubclass(data.DFIterDataPipe, data.IterDataPipe),
    )


@differential
def test_decorators(torch: Any) -> Any:
    data: Any = torch.utils.data

    @data.non_deterministic
    class Any_order(data.IterDataPipe):  # type: ignore[misc]
        def __iter__(self) -> Any:
            yield 1

    @data.non_deterministic(lambda count: count > 1)
    class Sometimes(data.IterDataPipe):  # type: ignore[misc]
        def __init__(self, count: int) -> None:
            self.count = count

        def __iter__(self) -> Any:
            yield self.count

    checked = data.argument_validation(_reads(data.IterDataPipe))

    def made_while_order_matters(make: Any) -> Any:
        with data.guaranteed_datapipes_determinism():
            return make()

    hooked = data.IterDataPipe
    hooked.set_getstate_hook(lambda state: state)
    hooked.set_reduce_ex_hook(lambda pipe: (list, ()))
    try:
        hooks = (
            outcome(lambda: hooked.set_getstate_hook(lambda state: state), "override existing getstate_hook"),
            outcome(lambda: hooked.set_reduce_ex_hook(lambda pipe: pipe), "override existing reduce_ex_hook"),
            pickle.loads(pickle.dumps(_numbers(torch))),
        )
    finally:
        hooked.set_getstate_hook(None)
        hooked.set_reduce_ex_hook(None)
    return (
        list(Any_order()),
        list(Sometimes(2)),
        outcome(lambda: made_while_order_matters(Any_order), "is non-deterministic, but you set"),
        outcome(lambda: made_while_order_matters(lambda: Sometimes(2)), "non-deterministic with the inputs"),
        list(made_while_order_matters(lambda: Sometimes(1))),
        outcome(lambda: data.non_deterministic(3), "can not be decorated"),
        outcome(lambda: data.non_deterministic(int), "Only `IterDataPipe` can be decorated"),
        outcome(lambda: checked([1]), "Expected argument 'source' as a IterDataPipe"),
        outcome(lambda: data.functional_datapipe("map")(type("Taken", (data.IterDataPipe,), {})), "already taken"),
        hooks,
    )


def _reads(kind: Any) -> Any:
    def read(source: Any) -> Any:
        return source

    read.__annotations__["source"] = kind
    return read


def test_samples_of_another_type_than_annotated_are_refused() -> None:
    from collections.abc import Iterator

    data = flambeau.utils.data

    def samples(self: Any) -> Any:
        yield 1
        yield "a"

    samples.__name__ = "__iter__"
    samples.__annotations__["return"] = Iterator[int]
    pipe = type("Mixed", (data.IterDataPipe,), {"__iter__": data.runtime_validation(samples)})()
    with pytest.raises(RuntimeError, match="Expected an instance as subtype of <class 'int'>, but found a"):
        list(pipe)
    with data.runtime_validation_disabled():
        assert list(pipe) == [1, "a"]
    with pytest.raises(TypeError, match="Can not decorate function"):
        data.runtime_validation(_twice)


def test_files(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "b.txt").write_text("two lines\nof text")
    (tmp_path / "a.json").write_text("[1, 2]")
    (tmp_path / "inner" / "c.cls").write_text("7")

    @differential
    def scenario(torch: Any) -> Any:
        steps, _ = _pipes(torch)
        common = importlib.import_module(f"{torch.__name__}.utils.data.datapipes.utils.common")

        def names(pipe: Any) -> list[str]:
            return [Path(path).relative_to(tmp_path).as_posix() for path in pipe]

        def decoded(pipe: Any) -> list[Any]:
            return [(Path(path).name, value) for path, value in pipe]

        every = steps.FileLister(str(tmp_path), recursive=True)
        text = steps.IterableWrapper([str(tmp_path / "b.txt")])
        stream = common.StreamWrapper(io.BytesIO(b"abc"), name="inside")
        parent = common.StreamWrapper(io.BytesIO(b"x"))
        child = common.StreamWrapper(io.BytesIO(b"y"), parent)
        parent.autoclose()
        before = parent.closed
        common.StreamWrapper.close_streams([{"a": child}])
        return (
            names(steps.FileLister(str(tmp_path))),
            names(every),
            names(steps.FileLister([str(tmp_path)], masks=["*.json", "*.cls"], recursive=True)),
            names(steps.IterableWrapper([str(tmp_path)]).list_files(masks="b*")),
            outcome(lambda: len(every), "valid length"),
            len(steps.FileLister(str(tmp_path), length=3)),
            [content for _, content in text.open_files().read_from_stream()],
            [content for _, content in text.open_files("rb").read_from_stream(chunk=6)],
            outcome(lambda: steps.FileOpener(text, mode="x"), "Invalid mode"),
            outcome(lambda: steps.FileOpener(text, mode="rb", encoding="utf-8"), "binary mode"),
            warned(lambda: decoded(every.open_files("rb").routed_decode()), "are deprecated since 1.12"),
            (repr(stream).partition(",")[0], stream.read(2), next(iter(stream))),
            (before, parent.closed, child.closed),
            common.match_masks("a.png", ["*.jpg", "*.png"]),
            outcome(lambda: common.validate_pathname_binary_tuple(("a", "b")), "binary stream within the tuple"),
            outcome(lambda: common.validate_pathname_binary_tuple(["a"]), "should be tuple type"),
            outcome(lambda: list(common.get_file_binaries_from_pathnames([1], "r")), "Expected string type"),
            list(common.get_file_pathnames_from_root(str(tmp_path / "a.json"), "*.txt")),
        )

    scenario()


def _without_torchaudio(handler: Any) -> Any:
    with mock.patch.dict(sys.modules, {"torchaudio": None}):
        return handler("wav", b"x")


@differential
def test_decoders(torch: Any) -> Any:
    decoder = importlib.import_module(f"{torch.__name__}.utils.data.datapipes.utils.decoder")
    from PIL import Image

    picture = Image.fromarray(numpy.arange(12, dtype=numpy.uint8).reshape(2, 2, 3) * 20)
    file = io.BytesIO()
    picture.save(file, format="png")
    png = file.getvalue()
    own = decoder.Decoder(decoder.handle_extension("neg", lambda data: -int(data)))
    own.add_handler(decoder.basichandlers)
    matlab = io.BytesIO()
    importlib.import_module("scipy.io").savemat(matlab, {"x": numpy.eye(2)})
    return (
        decoder.basichandlers("txt", b"abc"),
        decoder.basichandlers("cls", b"12"),
        decoder.basichandlers("json", b'{"a": 1}'),
        decoder.basichandlers("pickle", pickle.dumps([1])),
        decoder.basichandlers("cls", b"cat"),
        decoder.basichandlers("xyz", b""),
        [decoder.imagehandler(spec)("png", png) for spec in ("l8", "rgb8", "rgb", "torchrgb8", "torch")],
        decoder.imagehandler("pil")("png", png).mode,
        decoder.ImageHandler("rgb")("txt", png),
        outcome(lambda: decoder.imagehandler("cmyk"), "unknown image specification"),
        decoder.mathandler()("mat", matlab.getvalue())["x"],
        decoder.MatHandler()("txt", b""),
        decoder.extension_extract_fn("a/b.tar.gz"),
        own(("x.neg", io.BytesIO(b"3"))),
        own([("a.txt", b"t"), ("b.neg", b"4"), ("c.txt", b"")]),
        decoder.videohandler("txt", b"") is None and decoder.audiohandler("txt", b"") is None,
        outcome(lambda: _without_torchaudio(decoder.audiohandler), "torchaudio"),
    )


@differential
def test_loaders_of_pipes(torch: Any) -> Any:
    data = torch.utils.data
    _, maps = _pipes(torch)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(3)
    return (
        list(data.DataLoader(_numbers(torch).shuffle(), batch_size=3, shuffle=True)),
        list(data.DataLoader(_numbers(torch).shuffle(), batch_size=3, shuffle=False)),
        list(data.DataLoader(_numbers(torch).shuffle(), batch_size=3)),
        list(data.DataLoader(_numbers(torch).shuffle(), batch_size=4, generator=generator)),
        list(data.DataLoader(_numbers(torch).shuffle().map(_twice).shuffle(), batch_size=10)),
        list(data.DataLoader(maps.SequenceWrapper(range(6)), batch_size=3, shuffle=True)),
        list(data.DataLoader(_numbers(torch, 4).batch(2), batch_size=None)),
        len(data.DataLoader(_numbers(torch), batch_size=3)),
        torch.rand(2),
    )


@differential
def test_workers_divide_a_pipe(torch: Any) -> Any:
    torch.manual_seed(0)
    pipe = _numbers(torch).shuffle().sharding_filter()
    loader = torch.utils.data.DataLoader(pipe, batch_size=2, num_workers=2, persistent_workers=True)
    return list(loader), list(loader), torch.rand(2)


def test_a_shuffled_pipe_continues_where_it_was() -> None:
    def loader() -> Any:
        return flambeau.utils.data.DataLoader(_numbers(flambeau).shuffle(), batch_size=2)

    flambeau.manual_seed(1)
    first = loader()
    batches = iter(first)
    seen = [next(batches).tolist() for _ in range(2)]
    state = first.state_dict()
    rest = [batch.tolist() for batch in batches]
    second = loader()
    second.load_state_dict(state)
    assert [batch.tolist() for batch in second] == rest
    assert sorted(number for batch in seen + rest for number in batch) == list(range(10))


def test_threads_cannot_share_a_pipe() -> None:
    with pytest.raises(ValueError, match="one iterator at a time"):
        flambeau.utils.data.DataLoader(_numbers(flambeau), num_workers=1, worker_method="thread")
