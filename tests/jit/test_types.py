"""TorchScript's types as objects, and how they come out of annotations, comments and schemas."""

from __future__ import annotations

import enum
import importlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035  (what programs write)

import pytest

import flambeau
from tests.support.differential import differential, outcome


def _annotations(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.jit.annotations")


_PLAIN = [
    "Any",
    "Bool",
    "Complex",
    "DeviceObj",
    "Float",
    "Int",
    "None",
    "Number",
    "PyObject",
    "StreamObj",
    "String",
    "SymBool",
    "SymInt",
    "Tensor",
]


def _every_type(torch: Any) -> list[Any]:
    plain = [getattr(torch, f"{name}Type").get() for name in _PLAIN]
    integer, tensor, text = torch.IntType.get(), torch.TensorType.get(), torch.StringType.get()
    return [
        *plain,
        torch.ListType(integer),
        torch.ListType(torch.ListType(tensor)),
        torch.OptionalType(tensor),
        torch.DictType(text, tensor),
        torch.TupleType([integer, tensor]),
        torch.TupleType([]),
        torch.FutureType(tensor),
        torch.AwaitType(tensor),
        torch.RRefType(tensor),
        torch.UnionType([integer, tensor]),
        torch.UnionType([text, torch.FloatType.get(), integer]),
        torch.UnionType([integer, torch.NoneType.get()]),
        torch.ListType.ofInts(),
        torch.ListType.ofTensors(),
        torch.ListType.ofFloats(),
        torch.ListType.ofBools(),
        torch.ListType.ofStrings(),
        torch.ListType.ofComplexDoubles(),
        torch.OptionalType.ofTensor(),
        torch.TensorType.getInferred(),
    ]


@differential
def test_how_types_read(torch: Any) -> Any:
    types = _every_type(torch)
    return [
        (str(each), repr(each), each.annotation_str, each.kind(), type(each).__name__, str(each.containedTypes()))
        for each in types
    ]


@differential
def test_which_types_are_subtypes(torch: Any) -> Any:
    types = [each for each in _every_type(torch) if each.kind() not in ("SymIntType", "SymBoolType", "FutureType")]
    types = [each for each in types if each.kind() != "OptionalType" or type(each).__name__ == "OptionalType"]
    return [[(left.isSubtypeOf(right), left == right) for right in types] for left in types]


@differential
def test_parts_of_types(torch: Any) -> Any:
    integer, tensor, text = torch.IntType.get(), torch.TensorType.get(), torch.StringType.get()
    pairs = torch.DictType(text, tensor)
    return (
        (str(pairs.getKeyType()), str(pairs.getValueType())),
        str(torch.TupleType([integer, tensor]).elements()),
        [str(made(integer).getElementType()) for made in (torch.ListType, torch.OptionalType, torch.FutureType)],
        [str(made(integer).getElementType()) for made in (torch.AwaitType, torch.RRefType)],
        [each.str() for each in (integer, torch.ListType(integer), torch.OptionalType(integer), tensor)],
        str(torch.unify_type_list([integer, integer])),
        str(torch.unify_type_list([integer, torch.NoneType.get()])),
        outcome(lambda: torch.unify_type_list([integer, text]), "Could not unify type list since element 1"),
        (torch.InferredType(integer).success(), str(torch.InferredType(integer).type())),
        torch.InferredType("why not").reason(),
        integer.is_interface_type(),
        outcome(lambda: integer.sizes()),
    )


@differential
def test_types_of_certain_tensors(torch: Any) -> Any:
    known, tensor = torch.TensorType.create_from_tensor(torch.ones(2, 3)), torch.TensorType.get()
    return (
        [known.sizes(), known.strides(), known.dim(), str(known.dtype()), str(known.device()), known.scalarType()],
        [known.varyingSizes(), known.requires_grad(), known.undefined()],
        [known.with_sizes([4]).sizes(), str(known.with_dtype(torch.int32).dtype()), known.contiguous().strides()],
        str(known.with_device(torch.device("meta")).device()),
        [tensor.sizes(), tensor.strides(), tensor.dim(), tensor.dtype(), tensor.device()],
        [known == tensor, known.isSubtypeOf(tensor), tensor.isSubtypeOf(known)],
    )


@differential
def test_types_of_annotations(torch: Any) -> Any:
    annotations = _annotations(torch)
    written = [
        int,
        float,
        bool,
        str,
        complex,
        None,
        type(None),
        torch.Tensor,
        Any,
        torch.device,
        torch.dtype,
        torch.Generator,
        List[int],  # noqa: UP006
        list[List[int]],  # noqa: UP006
        Dict[str, torch.Tensor],  # noqa: UP006
        dict[str, int],
        Tuple[int, torch.Tensor],  # noqa: UP006
        Tuple[()],  # noqa: UP006
        Optional[int],  # noqa: UP045
        Union[int, str],  # noqa: UP007
        Union[int, None, str],  # noqa: UP007
        int | None,
        torch.futures.Future[int],
    ]
    return (
        [str(annotations.ann_to_type(each, None)) for each in written],
        str(annotations.try_ann_to_type(int, None)),
        [
            annotations.is_tuple(tuple[int]),
            annotations.is_list(list[int]),
            annotations.is_list(list),
            annotations.is_dict(dict[str, int]),
            annotations.is_optional(Optional[int]),  # noqa: UP045
            annotations.is_optional(Union[int, str, None]),  # noqa: UP007
            annotations.is_union(Union[int, str]),  # noqa: UP007
        ],
        annotations.TensorType is torch.TensorType,
    )


def _typed(x, y: int = 3, *, k: float = 1.0) -> Any:  # type: ignore[no-untyped-def]
    return x


def _lookup(torch: Any) -> Callable[[str], Any]:
    return lambda name: {"Tensor": torch.Tensor, "Tuple": Tuple}.get(name)  # noqa: UP006


@differential
def test_types_of_functions(torch: Any) -> Any:
    annotations = _annotations(torch)
    lookup = _lookup(torch)
    _typed.__annotations__.update(y=int, k=float)
    _typed.__annotations__["return"] = torch.Tensor
    source = "def f(x, y):\n    # type: (Tensor, Tuple[Tensor, Tensor]) -> Tensor\n    return x"
    several = "def f(x,  # type: Tensor\n      y  # type: int\n      ):\n    # type: (...) -> Tensor\n    return x"
    return (
        str(annotations.get_signature(_typed, lookup, None, False)),
        str(annotations.try_real_annotations(_typed, None)),
        annotations.try_real_annotations(lambda x: x, None),
        annotations.get_type_line(source),
        annotations.get_type_line(several).strip(),
        annotations.get_type_line("def f(x): pass"),
        annotations.split_type_line("# type: (int, float) -> Tensor"),
        outcome(lambda: annotations.split_type_line("# type: nothing"), "couldn't find `->`"),
        str(annotations.parse_type_line("# type: (Tensor, Tuple[Tensor, Tensor]) -> Tensor", lookup, None)),
        annotations.get_param_names(_typed, 3),
        annotations.check_fn(_typed, None),
    )


def test_types_of_classes() -> None:
    class Color(enum.Enum):
        RED = 1

    class Point:
        def norm(self) -> float:
            return 0.0

    annotations = _annotations(flambeau)
    color, point = annotations.ann_to_type(Color, None), annotations.ann_to_type(Point, None)
    assert isinstance(color, flambeau.EnumType)
    assert isinstance(point, flambeau.ClassType)
    assert point.name() == "Point"
    assert point.qualified_name().startswith("__torch__.tests.jit.test_types.")
    assert point.method_names() == ["norm"]
    assert point == annotations.ann_to_type(Point, None) != color
    shape = flambeau.InterfaceType("__torch__.Shape", Point)
    assert shape.is_interface_type()
    assert shape.getMethodNames() == ["norm"]
    assert shape.getMethod("norm") is Point.norm
    with pytest.raises(ValueError, match="Unknown type annotation"):
        annotations.ann_to_type(3, None)
    with pytest.raises(RuntimeError, match="Expected a single top-level function"):
        annotations.check_fn(_two, None)


_two = [lambda x: x][0]


@differential
def test_schemas(torch: Any) -> Any:
    text = 'aten::f.x(Tensor(a!) self, int[2] dim=[1, 2], *, float? alpha=None, str s="x") -> (Tensor(a!), int out)'
    schema = torch.parse_schema(text)
    older = torch.parse_schema("aten::g(Tensor x) -> Tensor")
    newer = torch.parse_schema("aten::g(Tensor x, int k=1) -> Tensor")
    return (
        str(schema),
        (schema.name, schema.overload_name, schema.is_mutable),
        [
            (each.name, str(each.type), str(each.real_type), each.N, each.default_value, each.has_default_value())
            for each in schema.arguments
        ],
        [(each.kwarg_only, each.is_out, each.is_write) for each in schema.arguments],
        [(each.name, str(each.type)) for each in schema.returns],
        newer.is_backward_compatible_with(older),
        older.is_backward_compatible_with(newer),
        newer.check_forward_compatible_with(older)[0],
        older.check_forward_compatible_with(older)[0],
        isinstance(schema, torch.FunctionSchema) and isinstance(schema.arguments[0], torch.Argument),
    )


@differential
def test_file_check(torch: Any) -> Any:
    def check(build: Callable[[Any], Any], text: str, *phrases: str) -> Any:
        return outcome(lambda: build(torch.FileCheck()).run(text), *phrases)

    missing, unwanted = "but did not find it", "Expected to not find"
    return (
        check(lambda c: c.check("a").check("b"), "a\nb\n"),
        check(lambda c: c.check("b").check("a"), "a\nb\n", missing),
        check(lambda c: c.check_not("b").check("a"), "a\nb\n"),
        check(lambda c: c.check("a").check_not("b").check("c"), "a\nb\nc", unwanted),
        check(lambda c: c.check_count("a", 2), "a a"),
        check(lambda c: c.check_count("a", 2, exactly=True), "a a a", unwanted),
        check(lambda c: c.check_count("a", 3), "a a", missing),
        check(lambda c: c.check("a").check_same("b"), "a b"),
        check(lambda c: c.check("a").check_same("b"), "a\nb", unwanted),
        check(lambda c: c.check("a").check_next("b"), "a\nb"),
        check(lambda c: c.check("a").check_next("b"), "a\n\nb", unwanted),
        check(lambda c: c.check_dag("b").check_dag("a"), "a b"),
        check(lambda c: c.check_dag("b").check_dag("a").check_not("c"), "a b c", unwanted),
        check(lambda c: c.check_regex("a+b"), "xaab"),
        check(lambda c: c.check_regex("^c"), "xaab", "Expected to find regex"),
        check(lambda c: c.check_source_highlighted("x+y"), "foo(x+y)\n    ~~~ <--- HERE"),
        check(lambda c: c.check_source_highlighted("x+y"), "foo(x+y)\n\n", "highlighted but it is not"),
        check(lambda c: c, "a", "No checks have been added"),
        outcome(lambda: torch.FileCheck().run("# CHECK: a\n# CHECK-NEXT: b\n", "a\nb")),
        outcome(lambda: torch.FileCheck().run("# CHECK: a\n# CHECK-NOT: b\n", "a\nb"), unwanted),
        outcome(lambda: torch.FileCheck().run("# CHECK-COUNT-2: a\n", "a"), missing),
    )


@differential
def test_containers(torch: Any) -> Any:
    numbers = torch.ScriptList([1, 2, 3])
    log: list[Any] = [numbers.pop(), numbers.pop(0), repr(numbers), outcome(lambda: numbers.append("x"))]
    numbers.extend([4, 5])
    numbers.insert(0, 9)
    log += [numbers.count(4), repr(numbers), 9 in numbers, list(numbers[0:2]), numbers[-1], len(numbers)]
    numbers.remove(4)
    numbers[0] = 7
    del numbers[1]
    log += [list(numbers), outcome(lambda: numbers[10]), bool(numbers), type(iter(numbers)).__name__]
    numbers.clear()
    pairs = torch.ScriptDict({"a": 1, "b": 2})
    log += [
        list(numbers),
        "a" in pairs,
        len(pairs),
        list(pairs.keys()),
        list(pairs.items()),
        outcome(lambda: pairs["z"]),
    ]
    pairs["c"] = 3
    del pairs["a"]
    log += [repr(pairs), list(pairs), outcome(lambda: pairs.__setitem__(1, 2))]
    log += [type(pairs.keys()).__name__, type(pairs.items()).__name__]
    return log, repr(torch.ScriptDict({})), repr(torch.ScriptList([]))


def test_lists_of_different_types_are_refused() -> None:
    with pytest.raises(TypeError, match="Unable to infer type of list"):
        flambeau.ScriptList([1, "a"])


def test_counters() -> None:
    from flambeau.jit import _counters

    logger = flambeau.LockingLogger()
    assert logger.get_counter_val("steps") == 0
    before = _counters.set_logger(logger)
    try:
        assert isinstance(before, flambeau.NoopLogger)
        for value in (1, 5):
            _counters.add_stat_value("steps", value)
    finally:
        _counters.set_logger(before)
    _counters.add_stat_value("steps", 100)
    assert logger.get_counter_val("steps") == 6
    logger.set_aggregation_type("steps", flambeau.AVG)
    assert logger.get_counter_val("steps") == 3
    assert (str(flambeau.AggregationType.SUM), int(flambeau.SUM)) == ("AggregationType.SUM", 0)
    assert isinstance(logger, flambeau.LoggerBase)


def test_archives_record_by_record(tmp_path: Path) -> None:
    @differential
    def scenario(torch: Any) -> Any:
        file = io.BytesIO()
        writer = torch.PyTorchFileWriter(file)
        writer.write_record("data/0", b"abcdefgh", 8)
        writer.write_record("text", "hello", 5)
        writer.write_record("storage", torch.arange(3, dtype=torch.uint8).untyped_storage(), 3)
        written = sorted(writer.get_all_written_records())
        named = writer.archive_name()
        writer.set_min_version(2)
        writer.write_end_of_file()
        file.seek(0)
        reader = torch.PyTorchFileReader(file)
        path = tmp_path / f"{torch.__name__}.zip"
        on_disk = torch.PyTorchFileWriter(str(path))
        on_disk.write_record("x", b"1", 1)
        on_disk.write_end_of_file()
        return (
            written,
            named,
            len(writer.serialization_id()),
            writer.serialization_id() == reader.serialization_id(),
            reader.get_all_records(),
            [reader.get_record(name) for name in ("data/0", "text", "storage", "version", "byteorder")],
            (reader.has_record("text"), reader.has_record("nothing")),
            (reader.get_record_offset("data/0"), reader.get_record_size("data/0")),
            (reader.get_record_header_offset("data/0"), reader.get_record_offset("text")),
            on_disk.archive_name() == torch.__name__,
            torch.PyTorchFileReader(str(path)).get_record("x"),
            outcome(lambda: reader.get_record("nothing"), "failed locating file nothing"),
            outcome(lambda: torch.PyTorchFileReader(str(tmp_path / "none")), "open file failed"),
            outcome(lambda: torch.PyTorchFileReader(io.BytesIO(b"abc"))),
        )

    scenario()
    file = io.BytesIO()
    writer = flambeau.PyTorchFileWriter(file)
    writer.write_record_metadata("later", 8)
    with pytest.raises(RuntimeError, match="serialize file twice"):
        writer.write_record("later", b"", 0)
    writer.write_end_of_file()
    reader = flambeau.PyTorchFileReader(file)
    assert reader.get_storage_from_record("later", 2, flambeau.float32).untyped_storage().tolist() == [0] * 8
    header, place = reader.get_record_header_offset("later"), reader.get_record_offset("later")
    assert reader.get_record_offset_no_read(header, "later", 8, 64) == place


@differential
def test_tags_and_switches(torch: Any) -> Any:
    class Loud(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "overridden"

    loud = torch.ones(2).as_subclass(Loud)
    before = torch.add(loud, 1)
    with torch._C.DisableTorchFunction() if torch is not flambeau else torch.DisableTorchFunction():
        during = type(torch.add(loud, 1)).__name__
    return before, during, {name: tag.value for name, tag in torch.Tag.__members__.items()}, str(torch.Tag.core)
