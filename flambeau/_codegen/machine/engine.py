"""From intermediate representation to machine code in memory: LLVM, started when the first kernel is asked for."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..._core.process.locks import new_lock, new_reentrant_lock
from ..._core.release import RELEASE
from ..arrays import HEADER
from ..build import ALL_PASSES
from ..ir import ir, llvm, llvmlite
from . import cache
from .system import own_symbols

_V2 = "+cx16,+sahf,+popcnt,+sse3,+sse4.1,+sse4.2,+ssse3"
_V3 = f"{_V2},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
OLDER = {
    "x86-64": "",
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": f"{_V3},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
}
"""The levels of x86-64 processors, with their instructions: for `FLAMBEAU_PROCESSOR`."""


def _processor() -> tuple[str, str]:
    """The name and the features of the processor to write code for: this one, or the older one that is asked for."""
    asked = os.environ.get("FLAMBEAU_PROCESSOR", "")
    if not asked:
        return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    if asked not in OLDER:
        raise ValueError(f"FLAMBEAU_PROCESSOR must be one of {', '.join(OLDER)}, but is {asked!r}")
    return asked, OLDER[asked]


class Engine:
    """The compiler for this processor, or for another target, and the machine code that it has loaded."""

    def __init__(self, triple: str = "", processor: str = "", features: str = "") -> None:
        if triple:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
        else:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
        self.triple = triple or llvm.get_process_triple()
        if not triple:
            processor, features = _processor()
        self.processor, self.features = processor, features
        self.is_arm: bool = self.triple.startswith(("aarch64", "arm64"))
        self.fuses = self.is_arm or "+fma" in self.features
        """Whether a product and a sum are one instruction."""
        self.register_bytes = 64 if "+avx512f" in self.features else 32 if "+fma" in self.features else 16
        self.has_32_registers = self.is_arm or self.register_bytes == 64
        """Of vectors; other processors have 16."""
        self._machine = self._new_machine()
        self._linker = None if triple else llvm.create_lljit_compiler(self._new_machine())
        self._linked: list[Any] = []
        self._numbers = itertools.count()
        """Also of what could not be linked: the linker takes a name once."""
        self._lock = new_lock()
        self.symbols = own_symbols()
        """Addresses that every module may refer to."""
        self.handed_over: dict[str, bytes] = {}
        """Machine code from files of programs, by its digest."""
        self.fingerprint = cache.digest(
            (
                RELEASE,
                llvmlite.__version__,
                np.__version__,
                str(HEADER),
                self.triple,
                self.processor,
                self.features,
                cache.source_digest(),
            )
        )

    def _new_machine(self) -> Any:
        # Addresses in full: code and its constants may come to lie more than two gigabytes apart.
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.processor, features=self.features, opt=2, reloc="static", codemodel="large", jit=True
        )

    def new_module(self, name: str) -> ir.Module:
        """An empty module."""
        module = ir.Module(name)
        module.triple = self.triple
        module.data_layout = str(self._machine.target_data)
        return module

    def optimised(self, module: ir.Module) -> Any:
        """The module as LLVM has improved it.

        Few passes are run: kernels are written with the vectors, tiles and unrolled loops that they should have, and
        what is invariant or common is found when machine code is made. All others together take four times as long as
        everything else, and the code of most kernels is no faster for it. Those that gain ask for them.
        """
        parsed = llvm.parse_assembly(str(module))
        parsed.verify()
        if "windows" in self.triple:
            # No exception passes through a kernel. Tables for unwinding must lie within four gigabytes of the code,
            # which the linker cannot promise, and LLVM cannot write all of those for ARM.
            for function in parsed.functions:
                function.add_function_attribute("nounwind")
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = False
        options.slp_vectorization = False
        options.loop_interleaving = False
        builder = llvm.create_pass_builder(self._machine, options)
        if ALL_PASSES in module.namedmetadata:
            passes = builder.getModulePassManager()
        else:
            passes = llvm.create_new_module_pass_manager()
            passes.add_sroa_pass()
            passes.add_instruction_combine_pass()
            passes.add_simplify_cfg_pass()
        passes.run(parsed, builder)
        return parsed

    def compile(self, module: ir.Module) -> bytes:
        """Machine code, not yet linked."""
        with self._lock:
            return bytes(self._machine.emit_object(self.optimised(module)))

    def assembly(self, module: ir.Module) -> str:
        """Machine code as text."""
        with self._lock:
            return str(self._machine.emit_assembly(self.optimised(module)))

    def load(
        self, name: str, parameters: Sequence[Any], write: Callable[[], ir.Module], exports: Sequence[str]
    ) -> Mapping[str, int]:
        """The addresses of a module's functions: handed over, from the cache, or written, compiled and kept there."""
        digest = self.digest_of(name, parameters)
        if (given := self.handed_over.get(digest)) is not None:
            try:
                return self.link(name, given, exports)
            except RuntimeError:
                del self.handed_over[digest]
        return cache.made_once(digest, lambda: self.compile(write()), lambda code: self.link(name, code, exports))

    def code_of(self, name: str, parameters: Sequence[Any], write: Callable[[], ir.Module]) -> bytes:
        """The machine code of a module that is loaded."""
        digest = self.digest_of(name, parameters)
        return self.handed_over.get(digest) or cache.made_once(digest, lambda: self.compile(write()), bytes)

    def digest_of(self, name: str, parameters: Sequence[Any]) -> str:
        """The name of a module's machine code among all that there is."""
        return cache.digest((self.fingerprint, name, *map(repr, parameters)))

    def link(self, name: str, code: bytes, exports: Sequence[str]) -> Mapping[str, int]:
        """Load machine code; the addresses of its functions."""
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for symbol, address in self.symbols.items():
            builder.import_symbol(symbol, address)
        for export in exports:
            builder.export_symbol(export)
        with self._lock:
            library = builder.link(self._linker, f"{name}.{next(self._numbers)}")
            self._linked.append(library)  # the code lives as long as this object
        return {export: library[export] for export in exports}


_ENGINE: Engine | None = None
_STARTING = new_reentrant_lock()


def engine() -> Engine:
    """The one engine of the process."""
    global _ENGINE
    if _ENGINE is None:
        with _STARTING:
            if _ENGINE is None:
                new = Engine()
                from . import threads

                threads.install(new)
                _ENGINE = new
    return _ENGINE
