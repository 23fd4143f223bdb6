"""What `jiterator` makes of a function template: a kernel for the dtypes that it meets."""

from __future__ import annotations

import re
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from .. import broadcast_tensors, empty_like, result_type
from .._backends.cuda.runtime.driver import driver
from .._codegen.cuda.elementwise import functions
from .._codegen.cuda.types import TYPES
from .._core.tensor import Tensor

_THREADS = 256
_HEAD = re.compile(r"template\s*<\s*typename\s+(\w+)\s*>\s*([\w&\s]+?)\s*(\w+)\s*\(")


class Jitted:
    """A function of tensors on a CUDA device, by a template in CUDA C++."""

    def __init__(self, code: str, outputs: int, constants: dict[str, Any]) -> None:
        found = _HEAD.search(code)
        if found is None:
            raise RuntimeError(f"Couldn't parse code, please check correctness:\n {code}")
        at = found.start(2)
        self._code, self._name = f"{code[:at]} FN {code[at:]}", found[3]
        self._outputs, self._constants = outputs, constants
        self._compiled = cache(self._compile)

    def _compile(self, dtype: str, inputs: int) -> Any:
        kind = TYPES[dtype]
        if kind.is_half:
            raise NotImplementedError(f"jiterator: templates are not compiled for {dtype} yet")
        names = [f"in{n}[i]" for n in range(inputs)] + [f"({kind.memory})a.c{n}" for n in range(len(self._constants))]
        results = [f"out{n}[i]" for n in range(self._outputs)]
        call = f"{self._name}<{kind.memory}>({', '.join(names + (results if self._outputs > 1 else []))})"
        arrays = [f"in{n}" for n in range(inputs)] + [f"out{n}" for n in range(self._outputs)]
        fields = [f"{kind.memory}* {each};" for each in arrays]
        fields += [f"double c{n};" for n in range(len(self._constants))]
        own = [f"{kind.memory}* {each} = a.{each};" for each in arrays]
        source = f"""{functions()}
{self._code}
struct Arguments {{ i64 count; {" ".join(fields)} }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  {" ".join(own)}
  if (i < a.count) {call if self._outputs > 1 else f"out0[i] = {call}"};
}}
"""
        layout = Struct(f"=q{'Q' * (inputs + self._outputs)}{'d' * len(self._constants)}")
        return driver().compile(source), layout.pack

    def __call__(self, *tensors: Tensor, **kwargs: Any) -> Any:
        unknown = set(kwargs) - set(self._constants)
        if unknown:
            raise RuntimeError(f"jiterator kernel got an unexpected keyword argument '{min(unknown)}'")
        kind = tensors[0].dtype
        for each in tensors[1:]:
            kind = result_type(each.new_empty((), dtype=kind), each)
        given = [each.to(kind).contiguous() for each in broadcast_tensors(*tensors)]
        results = [empty_like(given[0]) for _ in range(self._outputs)]
        count = given[0].numel()
        if count:
            launch, pack = self._compiled(np.dtype(given[0]._kind.dtype.numpy).name, len(given))
            places = [each.data_ptr() for each in (*given, *results)]
            constants = [float(kwargs.get(name, value)) for name, value in self._constants.items()]
            launch(-(-count // _THREADS), _THREADS, pack(count, *places, *constants))
        return results[0] if self._outputs == 1 else tuple(results)
