"""Compare the public names of PyTorch with Flambeau's, and write docs/names.md.

    python tools/names.py            write the page, and shorten the list of what is absent
    python tools/names.py --check    say what is not as the page and the list say
    python tools/names.py --grow     the same as the first, but the list may become longer
    python tools/names.py torch.cuda print what is absent below a namespace

The names are read from the installed PyTorch: of every public module what `__all__` says, or what it defines; of every
public class its public members; and the names with an underscore in tools/private_names.txt, which libraries import.
tools/absent_names.json lists what is absent or refuses to work, by reason.
"""

from __future__ import annotations

import argparse
import contextlib
import enum
import importlib
import inspect
import io
import json
import logging
import pkgutil
import re
import sys
import textwrap
import types
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "names.md"
LIST = ROOT / "tools" / "absent_names.json"
PRIVATE = ROOT / "tools" / "private_names.txt"

_NOT_LOOKED_AT = re.compile(
    r"torch\.(testing\..*|utils\.(data\.datapipes\.gen_pyi|hipify.*|tensorboard.*|benchmark\.(examples|op_fuzzers|utils).*|jit.*|"
    r"model_dump.*|show_pickle|collect_env\..*)|backends\.(xeon.*|python_native)|contrib.*|nativert.*|"
    r"distributed\.(flight_recorder|elastic\.rendezvous\.etcd|examples|benchmarks|run$|launch$).*|"
    r"(onnx|fx|export|cuda|distributed)\..*\b(examples?|tests?)\b.*)$"
)
"""Modules that are programs, tests, tools for building PyTorch, or not importable without further packages."""

_STANDARD = frozenset(sys.stdlib_module_names)

_QUANTIZED = (
    r"torch\.(ao|quantization)\b|torch\.nn\.(quantized|quantizable|intrinsic|qat)\b|(^|[._])q_|qint|quint|quantiz|"
    r"int_repr|fake_quant|fbgemm|qscheme|QU?Int|choose_qparams|fused_moving_avg|per_(tensor|channel)_"
)
_ELSEWHERE = (
    r"torch\.(xpu|mtia|mps)\b|\.(xpu|mtia|ipu|mps)$|vulkan|miopen|"
    r"torch\.backends\.(xnnpack|miopen|cusparselt|kleidiai|nnpack)"
)
_TYPES_OF_GRAPHS = (
    r"torch\.fx\.experimental\.(migrate_gradual_types|unification|graph_gradual_typechecker|refinement_types|rewriter|"
    r"unify_refinements|normalize|schema_type_annotation|meta_tracer|accelerator_partitioner|partitioner_utils|validator)"
)
REASONS: list[tuple[str, str]] = [
    (
        "elastic: servers for other programs, and parts of PyTorch's own implementation",
        r"torch\.distributed\.elastic",
    ),
    ("distributed: this part is not built", r"torch\.distributed|torch\.nn\.parallel\.(distributed|Distributed)"),
    (
        "quantization: comparisons of models, the older way by TorchScript, and parts of PyTorch's own implementation",
        _QUANTIZED,
    ),
    ("PyTorch's experiments with the types of graphs: not built", _TYPES_OF_GRAPHS),
    (
        "sizes are numbers in graphs, and symbols of sizes are not built",
        r"torch\.fx\.experimental\.(sym|proxy_tensor|recording)",
    ),
    ("the layout of one CPU library: kernels take ordinary tensors", r"mkldnn|torch\.fx\.experimental\.optimization"),
    ("fx: this pass or helper is not built", r"torch\.fx\b"),
    ("export: this part is not built", r"torch\.(export|_export)\b"),
    ("ONNX: converters are functions of one table, and not modules by opset", r"torch\.onnx\.?symbolic_opset"),
    ("ONNX: this part is not built", r"torch\.onnx\b"),
    (
        "TorchScript: its compiler does not exist, and what is scripted runs as Python",
        r"torch\.jit\b|torch\.(Script|CompilationUnit)",
    ),
    ("profiler: this part is not built", r"torch\.(profiler|autograd\.profiler)"),
    ("a device or library that Flambeau does not run on", _ELSEWHERE),
    ("plans of transforms are kept by the library that makes them", r"cuFFTPlan"),
    ("C++ extensions: Flambeau has no C++", r"torch\.utils\.cpp_extension"),
    ("pipes of tables: not built, deprecated in PyTorch", r"torch\.utils\.data\.|DataPipe|datapipe"),
    ("parts of PyTorch's own implementation of masked tensors", r"torch\.masked"),
]
"""Why names are absent: the first pattern that is found in the full name decides."""
LARGE = frozenset(
    f"torch.{each}"
    for each in ("ao", "distributed", "export", "fx", "jit", "onnx", "package", "quantization", "utils.data.datapipes")
)
"""Packages that are works of their own, counted apart too."""
OTHERWISE = "not built yet"


class State(enum.Enum):
    """What Flambeau has under a name."""

    PRESENT = "present"
    REFUSES = "refuses"
    ABSENT = "absent"


class Name(NamedTuple):
    """One public name of PyTorch."""

    full: str
    owner: str
    kind: str
    state: State
    documented: bool = True

    @property
    def space(self) -> str:
        """The namespace under which the page lists it."""
        if self.kind == "member":
            return "members of classes" if not self.full.startswith("torch.Tensor.") else "torch.Tensor"
        if self.kind == "private":
            return "names with an underscore"
        if re.match(r"torch\.nn\.(quantized|quantizable|intrinsic|qat)\b", self.full):
            return "torch.quantization"  # older names of parts of it
        if self.full.startswith("torch.utils.data.datapipes"):
            return "torch.utils.data.datapipes"
        return ".".join(self.owner.split(".")[:2])


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Importing all of PyTorch warns and prints."""
    logging.disable()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def public_modules() -> dict[str, types.ModuleType]:
    """PyTorch's modules without an underscore in their names."""
    import torch

    found = {"torch": torch}
    pending = [("torch", torch.__path__)]
    while pending:
        package, path = pending.pop()
        for info in pkgutil.iter_modules(path):
            name = f"{package}.{info.name}"
            if info.name.startswith("_") or _NOT_LOOKED_AT.match(name):
                continue
            try:
                module = importlib.import_module(name)
            except (ImportError, RuntimeError, AssertionError, AttributeError, OSError):
                continue  # it needs a package or a device that is not here
            found[name] = module
            if info.ispkg:
                with contextlib.suppress(AttributeError):  # some packages put an object in their own place
                    pending.append((name, original(module).__path__))
    return found


def original(module: Any) -> Any:
    """The module itself, where an object with properties stands for it, as for those of `torch.backends`."""
    inner = vars(module).get("m")
    return inner if isinstance(inner, types.ModuleType) else module


def names_of(name: str, module: types.ModuleType) -> set[str]:
    """The public names of one module, submodules left out."""
    listed = getattr(module, "__all__", None)
    if listed is not None and name != "torch":
        return {each for each in listed if not each.startswith("_") and hasattr(module, each)}
    found = (
        {each for each in vars(type(module)) if not each.startswith("_")} if original(module) is not module else set()
    )
    for each, value in vars(original(module)).items():
        if each.startswith("_") or isinstance(value, (types.ModuleType, TypeVar)):
            continue
        home = getattr(value, "__module__", None)
        if name == "torch":
            if home is None or home.partition(".")[0] == "torch" or each in module.__all__:
                found.add(each)
        elif isinstance(value, types.BuiltinFunctionType) or (home or "").startswith(name):
            found.add(each)
    if name == "torch":
        found |= {each for each in module.__all__ if not isinstance(getattr(module, each), types.ModuleType)}
        found -= {
            each for each in found if getattr(getattr(module, each), "__module__", "") in _STANDARD - {"builtins"}
        }
    return found


def members_of(cls: type) -> set[str]:
    """The public methods and attributes that a class of PyTorch's defines; those of its bases are theirs."""
    if type(cls).__name__ == "tensortype":  # FloatTensor and its kin: a way to make tensors, no class of its own
        return set()
    bases = cls.__mro__[:-1] if cls.__name__ == "Tensor" else [cls]  # most of Tensor is in a hidden base
    return {each for base in bases for each in vars(base) if not each.startswith("_")}


def lookup(full: str) -> Any:
    """Flambeau's object for a dotted name of PyTorch's."""
    parts = full.split(".")
    if parts[-1] in ("name", "value") and isinstance(owner := lookup(full.rpartition(".")[0]), enum.EnumMeta):
        return getattr(next(iter(owner)), parts[-1])  # only members have these
    for end in range(len(parts) - 1, 0, -1):  # the module first: a package may have a function of the same name
        try:
            value: Any = importlib.import_module(".".join(["flambeau", *parts[1:end]]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:-1]:
            value = getattr(value, part)
        try:
            return getattr(value, parts[-1])
        except AttributeError:
            if end < len(parts) - 1:
                raise
            try:
                return importlib.import_module(".".join(["flambeau", *parts[1:]]))
            except ImportError:
                raise AttributeError(full) from None
    raise AttributeError(full)


def has_own_text(value: Any) -> bool:
    """Whether something has a documentation of its own: not its base's, nor a bare signature that a tool has made."""
    text = vars(value).get("__doc__") if isinstance(value, type) else inspect.getattr_static(value, "__doc__", None)
    if not isinstance(value, type) and not isinstance(text, str):  # a builtin function computes it
        with contextlib.suppress(Exception):
            text = value.__doc__
    called = (type, types.FunctionType, types.BuiltinFunctionType)
    bare = f"{value.__name__}(" if isinstance(value, called) else None
    return isinstance(text, str) and bool(text.strip()) and (bare is None or not text.startswith(bare))


def is_documented(full: str, kind: str, module: Any, value: Any) -> bool:
    """Whether PyTorch itself treats a name as documented; `DOCUMENTED` says the rule."""
    if "experimental" in full.split("."):
        return False
    if kind != "module" and full.count(".") > 1 and getattr(module, "__all__", None) is None:
        return False
    return has_own_text(value) or (kind == "name" and not callable(value))


DOCUMENTED = (
    "**Documented, or imported by libraries** are the names of PyTorch's that its modules list in `__all__` (or that "
    "stand in `torch` itself, or are modules) and that have a text of their own, and those with an underscore that "
    "libraries import; nothing below a module called `experimental`. Values that are no functions or classes need no "
    "text."
)


def state_of(full: str, theirs: Any) -> State:
    """Whether Flambeau has the name, and whether it works."""
    try:
        ours = lookup(full)
    except (AttributeError, ImportError):
        return State.ABSENT
    except NotImplementedError:
        return State.REFUSES
    # Of a class, its own mark alone: subclasses are not marked by what they inherit from.
    marked = "__absent__" in vars(ours) if isinstance(ours, (type, types.ModuleType)) else hasattr(ours, "__absent__")
    if marked:
        return State.REFUSES
    if isinstance(theirs, type) and not isinstance(ours, type) and not callable(ours):
        return State.ABSENT
    if callable(theirs) and not callable(ours) and not isinstance(theirs, type):
        return State.ABSENT
    return State.PRESENT


def all_names() -> list[Name]:
    """Every name of PyTorch's with what Flambeau has under it."""
    found: dict[str, Name] = {}
    with quietly():
        modules = public_modules()
        for module_name, module in modules.items():
            if module_name != "torch":
                state = state_of(module_name, module)
                text = is_documented(module_name, "module", module, module)
                found[module_name] = Name(module_name, module_name, "module", state, text)
            for each in names_of(module_name, module):
                full = f"{module_name}.{each}"
                value = getattr(module, each, None)
                text = is_documented(full, "name", module, value)
                found[full] = Name(full, module_name, "name", state_of(full, value), text)
        classes: dict[type, str] = {}  # each class once: in the shortest namespace that has it
        for full, name in sorted(found.items(), key=lambda item: len(item[0])):
            value = getattr(modules[name.owner], full.rpartition(".")[2], None) if name.kind == "name" else None
            if isinstance(value, type) and str(value.__module__).startswith("torch"):
                classes.setdefault(value, full)
        for cls, full in classes.items():
            # A class that PyTorch's build for the CPU makes no instance of has no members to look for.
            usable = found[full].state is State.PRESENT and not getattr(lookup(full), "__unusable__", False)
            if usable:
                for member in members_of(cls):
                    inner = f"{full}.{member}"
                    text = found[full].documented and has_own_text(inspect.getattr_static(cls, member, None))
                    found[inner] = Name(inner, full, "member", state_of(inner, None), text)
        for line in PRIVATE.read_text(encoding="utf-8").splitlines():
            full = line.strip()
            if full and not full.startswith("#"):
                found[full] = Name(full, full.rpartition(".")[0], "private", state_of(full, None))
    return sorted(found.values())


def reason_for(name: Name) -> str:
    """Why a name is absent: what the object itself says, or the first rule that fits."""
    if name.state is State.REFUSES:
        with contextlib.suppress(AttributeError, ImportError, NotImplementedError):
            return str(lookup(name.full).__absent__)
    return next((reason for reason, pattern in REASONS if re.search(pattern, name.full)), OTHERWISE)


def listed_absences(names: list[Name]) -> dict[str, dict[str, list[str]]]:
    """reason -> what holds the name -> the names."""
    lists: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in names:
        if name.state is not State.PRESENT:
            owner, _, last = name.full.rpartition(".")
            lists[reason_for(name)][owner].append(last)
    return {reason: dict(sorted(owners.items())) for reason, owners in sorted(lists.items())}


def flat(lists: dict[str, dict[str, list[str]]]) -> set[str]:
    """The full names of such a list."""
    return {f"{owner}.{last}" for owners in lists.values() for owner, lasts in owners.items() for last in lasts}


def page_text(names: list[Name]) -> str:
    """docs/names.md."""
    counts: dict[str, Counter[State]] = defaultdict(Counter)
    for name in names:
        counts[name.space][name.state] += 1
    total = sum(counts.values(), Counter[State]())
    everyday = sum((counter for space, counter in counts.items() if space not in LARGE), Counter[State]())
    lines = [
        "# The names of PyTorch 2.13",
        "",
        "Generated by `tools/names.py`, which reads the public names of PyTorch (modules, functions, classes, their",
        "methods and attributes, and those with an underscore that libraries import) and looks for each in Flambeau.",
        "**Present**: it works. **Refuses**: it can be imported; using it raises a `NotImplementedError` that names",
        "this page. **Absent**: an `AttributeError` or `ImportError`. The reasons are below the table. The large",
        f"packages are {', '.join(f'`{each}`' for each in sorted(LARGE))}.",
        "",
        *textwrap.wrap(DOCUMENTED, 115),
        "",
        "| namespace | names | present | refuses | absent | present, % |",
        "|---|--:|--:|--:|--:|--:|",
    ]

    def row(label: str, counter: Counter[State]) -> str:
        number = sum(counter.values())
        here, refuses, absent = (counter[state] for state in State)
        return f"| {label} | {number} | {here} | {refuses} | {absent} | {here / number:.1%} |".replace("%", "")

    lines.append(row("**all**", total))
    lines.append(row("**all but the large packages**", everyday))
    told = Counter(name.state for name in names if name.documented)
    lines.append(row("**documented, or imported by libraries**", told))
    lines += [row(f"`{each}`" if each.startswith("torch") else each, counts[each]) for each in sorted(counts)]
    lines += ["", "## What is absent, and why", ""]
    for reason, owners in listed_absences(names).items():
        number = sum(map(len, owners.values()))
        lines += [f"### {reason[0].upper()}{reason[1:]} ({number})", ""]
        for owner, lasts in owners.items():
            lines += [f"- `{owner}`: {', '.join(f'`{each}`' for each in lasts)}"]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--grow", action="store_true")
    parser.add_argument("space", nargs="?")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    names = all_names()
    if arguments.space:
        for name in names:
            if name.full.startswith(arguments.space) and name.state is not State.PRESENT:
                print(name.state.value, name.full)
        return 0
    lists = listed_absences(names)
    now, before = flat(lists), flat(json.loads(LIST.read_text(encoding="utf-8"))) if LIST.exists() else set()
    problems = [f"absent, but not listed: {each}" for each in sorted(now - before)]
    if arguments.check:
        problems += [f"listed as absent, but present: {each}" for each in sorted(before - now)]
        if not problems and PAGE.read_text(encoding="utf-8") != page_text(names):
            problems.append("docs/names.md is not up to date: run tools/names.py")
    if problems and not arguments.grow:
        print(*problems, sep="\n")
        return 1
    if not arguments.check:
        LIST.write_text(json.dumps(lists, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page_text(names), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
