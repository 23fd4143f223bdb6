"""What profiles consist of, under the names of `torch.autograd.profiler_util`: events, their averages, tables."""

from __future__ import annotations

import bisect
import enum
import gzip
import json
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .._core.names.absent import Table
from .._core.names.same_as import same_as

__all__ = [
    "EventList",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MemRecordsAcc",
    "StringTable",
]

__getattr__, __dir__ = (
    Table(__name__).absent("profiles have no records of a device's own", classes="EventMetadata").parts()
)


class Interval:
    """An interval of time, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long it is."""
        return self.end - self.start


class Kernel(NamedTuple):
    """Something that ran on a device, started by an op."""

    name: str
    device: int
    duration: float


class StringTable(dict[str, str]):
    """Names as they are shown: each is its own."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Records of memory in the order of their time, to be looked up by intervals of it."""

    def __init__(self, mem_records: Iterable[Any]) -> None:
        self._mem_records = list(mem_records)
        timed = sorted((record[0].start_ns(), number) for number, record in enumerate(self._mem_records))
        self._times = [time for time, _ in timed]
        self._numbers = [number for _, number in timed]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[Any]:
        """The records from one moment to another."""
        first, last = bisect.bisect_left(self._times, start_ns), bisect.bisect_right(self._times, end_ns)
        for number in self._numbers[first:last]:
            yield self._mem_records[number]


def _older_name(older: str, newer: str) -> property:
    """An attribute under the name that it had before."""

    def get(self: Any) -> Any:
        warnings.warn(f"`{older}` is deprecated. Use `{newer}` instead.", FutureWarning, stacklevel=2)
        return getattr(self, newer)

    return property(get, doc=f"`{newer}`, under its older name.")


class FormattedTimesMixin:
    """Times as text, and averages."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total = 0.0
    self_device_time_total = 0.0
    device_memory_usage = 0
    self_device_memory_usage = 0

    cuda_time = _older_name("cuda_time", "device_time")
    cuda_time_total = _older_name("cuda_time_total", "device_time_total")
    self_cuda_time_total = _older_name("self_cuda_time_total", "self_device_time_total")
    self_cuda_memory_usage = _older_name("self_cuda_memory_usage", "self_device_memory_usage")

    @property
    def cpu_time(self) -> float:
        """The average duration of a call in microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """The average time on a device."""
        return self.device_time_total / self.count if self.count else 0.0

    @property
    def device_time_str(self) -> str:
        """`device_time` as text."""
        return format_time(self.device_time)

    @property
    def device_time_total_str(self) -> str:
        """`device_time_total` as text."""
        return format_time(self.device_time_total)

    @property
    def self_device_time_total_str(self) -> str:
        """`self_device_time_total` as text."""
        return format_time(self.self_device_time_total)

    @property
    def cpu_time_str(self) -> str:
        """`cpu_time` as text."""
        return format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """`cpu_time_total` as text."""
        return format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """`self_cpu_time_total` as text."""
        return format_time(self.self_cpu_time_total)


class DeviceType(enum.Enum):
    """Where an event took place, as far as profiles note it."""

    CPU = 0


class FunctionEvent(FormattedTimesMixin):
    """One op or one marked range that ran."""

    device_type = DeviceType.CPU

    # What PyTorch notes of remote calls, of devices and of the threads of its engine: nothing of that is here.
    node_id = sequence_nr = -1
    fwd_thread = scope = device_index = device_resource_id = 0
    overload_name = metadata_json = ""
    use_device = None
    is_remote = is_legacy = is_python_function = False

    def __init__(
        self, id: int, name: str, thread: int, start_us: float, end_us: float, *, input_shapes: Any = (),
        stack: Iterable[str] = (), flops: int = 0, memory: int = 0, module: str = "", is_user_annotation: bool = False,
    ) -> None:  # fmt: skip
        self.id, self.thread = id, thread
        self.trace_name = name
        self.name = "ProfilerStep*" if name.startswith("ProfilerStep#") else name  # all steps have one average
        self.time_range = Interval(start_us, end_us)
        self.count = 1
        self.input_shapes = list(input_shapes)
        self.stack = list(stack)
        self.flops = flops
        self.own_memory = memory
        self.module = module
        """The path of the module whose forward pass ran, if that was asked for."""
        self.is_user_annotation = is_user_annotation
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.kernels: list[Kernel] = []
        self.is_async = False

    key: str = same_as("name", "The name by which averages are taken.")

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]  # averages have a sum there
        """The duration in microseconds."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]  # likewise
        """The duration less that of what ran inside."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    self_cpu_memory_usage: int = same_as("own_memory", "The bytes of the results.")

    @property
    def cpu_memory_usage(self) -> int:
        """The bytes of the results, those of what ran inside included."""
        return self.own_memory + sum(child.cpu_memory_usage for child in self.cpu_children)

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Note what ran inside."""
        self.cpu_children.append(child)
        child.cpu_parent = self

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Note inside of what it ran."""
        self.cpu_parent = parent

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Note what it started on a device."""
        self.kernels.append(Kernel(name, device, duration))

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} thread={self.thread} "
            f"input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """Events of one name together."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.flops = 0
        self.input_shapes: Any = None
        self.stack: list[str] = []
        self.is_user_annotation = False
        self.cpu_children: list[FunctionEvent] = []

    def add(self, other: Any) -> FunctionEventAvg:
        """Count an event, or the events of another average."""
        if self.key is None:
            self.key, self.input_shapes, self.stack = other.key, other.input_shapes, other.stack
            self.is_user_annotation = other.is_user_annotation
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.flops += other.flops
        self.cpu_children += other.cpu_children
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes}>"
        )


class EventList(list[Any]):
    """Events in the order of their start, or their averages; `str()` is a table."""

    def __init__(
        self, events: Iterable[Any] = (), *, profile_memory: bool = False, with_flops: bool = False, **options: Any
    ) -> None:
        super().__init__(events)
        self._profile_memory, self._with_flops = profile_memory, with_flops
        self.metadata: dict[str, Any] = {}
        self.memory: tuple[list[int], list[list[int]]] = ([], [])
        """Times in microseconds, and the bytes of tensors by category at each."""
        self.spans: list[tuple[str, float, float]] = []
        """What was under way beside the ops: a name, and the microseconds of its start and its end."""

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, none counted twice."""
        return float(sum(event.self_cpu_time_total for event in self))

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """One average for each name, or for each name with each list of shapes, or with each stack."""
        groups: dict[Any, FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shapes else None
            groups[event.key, shapes, tuple(event.stack[:group_by_stack_n])].add(event)
        averages = EventList(groups.values(), profile_memory=self._profile_memory, with_flops=self._with_flops)
        for average in averages:
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
        return averages

    def total_average(self) -> FunctionEventAvg:
        """All events as one."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total

    def __str__(self) -> str:
        return self.table()

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
        max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
        top_level_events_only: bool = False, time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """The events as text, those with the largest `sort_by` (such as `self_cpu_time_total`) first."""
        rows: list[Any] = list(self)
        if top_level_events_only:
            rows = [event for event in rows if getattr(event, "cpu_parent", None) is None]
        if sort_by is not None:
            name = sort_by.replace("cuda", "device").replace("xpu", "device")
            if rows and not hasattr(rows[0], name):
                raise ValueError(f"table(): events have no {sort_by!r} to sort by")
            rows.sort(key=lambda event: getattr(event, name), reverse=True)
        total = self.self_cpu_time_total

        def time(value: float) -> str:
            return format_time(value) if time_unit is None else f"{value / _UNITS[time_unit]:.3f}{time_unit}"

        columns: list[tuple[str, Callable[[Any], str]]] = [
            ("Name", lambda event: _cut(event.key, max_name_column_width)),
            ("Self CPU %", lambda event: _share(event.self_cpu_time_total, total)),
            ("Self CPU", lambda event: time(event.self_cpu_time_total)),
            ("CPU total %", lambda event: _share(event.cpu_time_total, total)),
            ("CPU total", lambda event: time(event.cpu_time_total)),
            ("CPU time avg", lambda event: time(event.cpu_time)),
        ]
        if self._profile_memory:
            columns.append(("CPU Mem", lambda event: format_memory(event.cpu_memory_usage)))
            columns.append(("Self CPU Mem", lambda event: format_memory(event.self_cpu_memory_usage)))
        columns.append(("# of Calls", lambda event: str(event.count)))
        if any(event.input_shapes for event in rows):
            columns.append(("Input Shapes", lambda event: _cut(str(event.input_shapes or []), max_shapes_column_width)))
        if any(event.stack for event in rows):
            columns.append(("Source Location", lambda event: _cut(next(iter(event.stack), ""), max_src_column_width)))
        if self._with_flops:
            factor, unit = _flops_unit(max((event.flops for event in rows), default=0))
            columns.append((f"Total {unit}", lambda event: f"{event.flops / factor:.3f}" if event.flops > 0 else "--"))
        cells = [[show(event) for _, show in columns] for event in rows[: row_limit if row_limit >= 0 else None]]
        widths = [max([len(title), *(len(row[number]) for row in cells)]) for number, (title, _) in enumerate(columns)]
        rule = "  ".join("-" * width for width in widths)
        titles = "  ".join(
            title.ljust(width) if number == 0 else title.rjust(width)
            for number, ((title, _), width) in enumerate(zip(columns, widths, strict=True))
        )
        lines = [rule, titles, rule]
        lines += [
            "  ".join(
                cell.ljust(width) if number == 0 else cell.rjust(width)
                for number, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in cells
        ]
        heading = [] if header is None else ["=" * len(rule), header]
        return "\n".join([*heading, *lines, rule, f"Self CPU time total: {time(total)}", ""])

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events as a file for chrome://tracing and Perfetto; a name with `.gz` is compressed."""
        write_trace(path, self.trace_events(os.getpid(), "python"), self.metadata)

    def trace_events(self, process: int, name: str, shift: float = 0) -> list[dict[str, Any]]:
        """The events as such files have them: of a process with a number and a name, so many microseconds later."""
        events: list[dict[str, Any]] = [
            {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}}
        ]
        events += [
            {"ph": "C", "name": "Memory of tensors", "tid": 0, "ts": time, "args": {"bytes": sum(sizes)}}
            for time, sizes in zip(*self.memory, strict=True)
        ]
        for number, (what, start, end) in enumerate(self.spans):
            common = {"cat": "collective", "name": what, "id": f"{process}.{number}", "tid": 0}
            events += [{"ph": "b", "ts": start, **common}, {"ph": "e", "ts": end, **common}]
        events += map(_trace_event, self)
        for event in events:
            event["pid"] = process
            if "ts" in event:
                event["ts"] += shift
        return events

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` can count."""
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        """Write one line for each stack with its time in microseconds, for flame graphs."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        times: dict[str, int] = defaultdict(int)
        for event in self:
            if event.stack:
                frames = [frame.replace(" ", "_").replace(";", "_") for frame in reversed(event.stack)]
                times[";".join(frames)] += int(event.self_cpu_time_total) if metric == "self_cpu_time_total" else 0
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{stack} {time}\n" for stack, time in times.items() if time > 0)


def write_trace(path: str | os.PathLike[str], events: list[dict[str, Any]], metadata: dict[str, Any]) -> None:
    """Write a file for chrome://tracing and Perfetto."""
    document = {"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events, **metadata}
    opened = gzip.open if os.fspath(path).endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8") as file:
        json.dump(document, file)


_UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6}


def format_time(time_us: float) -> str:
    """Microseconds in the unit that suits them."""
    unit = "s" if time_us >= 1e6 else "ms" if time_us >= 1e3 else "us"
    return f"{time_us / _UNITS[unit]:.3f}{unit}"


def format_memory(nbytes: int) -> str:
    """Bytes in the unit that suits them."""
    for unit, size in (("GB", 1024**3), ("MB", 1024**2), ("KB", 1024)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


def _share(part: float, total: float) -> str:
    return f"{100 * part / total:.2f}%" if total else "NaN"


def _cut(text: str, width: int) -> str:
    return text if width <= 0 or len(text) <= width else text[: width - 3] + "..."


def _flops_unit(most: int) -> tuple[float, str]:
    for factor, unit in ((1e12, "TFLOPs"), (1e9, "GFLOPs"), (1e6, "MFLOPs"), (1e3, "KFLOPs")):
        if most >= factor:
            return factor, unit
    return 1.0, "FLOPs"


def _trace_event(event: Any) -> dict[str, Any]:
    details: dict[str, Any] = {"External id": event.id}
    if event.input_shapes:
        details["Input Dims"] = event.input_shapes
    if event.stack:
        details["Call stack"] = ";\n".join(event.stack)
    if event.module:
        details["Module"] = event.module
    if event.flops:
        details["Flops"] = event.flops
    if event.own_memory:
        details["Bytes"] = event.own_memory
    return {
        "ph": "X", "cat": "user_annotation" if event.is_user_annotation else "cpu_op", "name": event.trace_name,
        "tid": event.thread, "ts": event.time_range.start, "dur": event.cpu_time_total,
        "args": details,
    }  # fmt: skip
