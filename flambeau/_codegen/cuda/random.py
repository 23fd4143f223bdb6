"""Kernels that fill memory with random numbers, each number by the thread and the draw by which PyTorch's make it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from .elementwise import functions
from .types import TYPES

THREADS = 256

_FORMULAS = {
    "uniform_": "x * (C)a.p0 + (C)a.p1",
    "normal_": "x * (C)a.p1 + (C)a.p0",
    "log_normal_": "quick_exp(x * (C)a.p1 + (C)a.p0)",
    "exponential_": "exponential<C>(x, (C)a.p0, (C)a.p1)",
    "cauchy_": "cauchy<C>(x, (C)a.p0, (C)a.p1, (C)a.p2)",
    "geometric_": "ceil(quick_log(x) / quick_log1p((C)-a.p0))",
    "bernoulli_number_": "(C)(x < (C)a.p0)",
}
"""The number of each distribution from one that was drawn, `x`; the parameters are p0, p1, p2."""

INTEGERS = "integers"
"""Whole numbers: the remainder by a range, from a first one on."""


POSITION = "const u64* state; u64 seed; u64 offset;"
"""Where a kernel draws from: at the seed and the offset, or those that stand at `state` with these added to them."""
FIND = """const u64 seed = a.state ? a.state[0] : a.seed;
  u64 counter = (a.offset + (a.state ? a.state[1] : 0)) / 4;"""
"""The seed and the counter from which such a kernel draws."""


@cache
def prelude() -> str:
    """What every kernel that draws begins with."""
    return functions() + (Path(__file__).parent / "random.cuh").read_text(encoding="utf-8")


def draw_source(distribution: str, dtype: str, wide: bool = False) -> str:
    """The kernel that fills `count` elements of `dtype`; `wide`: whole numbers are made of 64 bits."""
    kind = TYPES[dtype]
    if distribution == INTEGERS:
        drawn, method = "u64" if wide else "u32", "uniform"
        value = "(i64)(x % (C)a.range) + a.first"
        fields = "u64 range; i64 first;"
    else:
        drawn = "double" if dtype == "float64" else "float"
        method = "normal" if "normal" in distribution else "uniform"
        value, fields = _FORMULAS[distribution], "double p0, p1, p2;"
    stored = f"({kind.memory})({value})" if not kind.is_half else kind.stored(f"(float)({value})")
    if distribution == "uniform_":  # the upper bound, which rounding may reach, stands for the lower one
        stored = f"upper_excluded({stored}, {kind.stored('(C)a.p2')}, {kind.stored('(C)a.p1')})"
    return f"""{prelude()}
typedef {drawn} C;
template <class T> FN T upper_excluded(T x, T upper, T lower) {{ return x == upper ? lower : x; }}
struct Arguments {{ i64 count; {kind.memory}* out; {POSITION} {fields} }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  const i64 threads = (i64)gridDim.x * blockDim.x;
  {FIND}
  for (i64 start = thread; start < a.count; start += threads * Draw<C>::COUNT) {{
    C drawn[Draw<C>::COUNT];
    Draw<C>::{method}(philox(seed, thread, counter++), drawn);
    for (int i = 0; i < Draw<C>::COUNT; i++) {{
      const i64 place = start + threads * i;
      if (place < a.count) {{
        const C x = drawn[i];
        a.out[place] = {stored};
      }}
    }}
  }}
}}
"""


def mask_source(width: int, dtype: str | None = None) -> str:
    """The kernel that draws the mask of dropout, `width` neighbours by one thread; 1: four that are far apart.

    With a `dtype` it does the whole: the elements that the mask keeps, times a factor, are written too.
    """
    if width == 1:
        loop = """for (i64 start = thread; start < a.count; start += threads * 4) {
    const Words words = philox(seed, thread, counter++);
    for (int i = 0; i < 4; i++)
      if (start + threads * i < a.count) put(a, start + threads * i, unit(words.at[i]) < keep);
  }"""
    elif width == 2:
        loop = """Words words;
  bool second = false;
  for (i64 start = thread * 2; start < a.count; start += threads * 2) {
    if (!second) words = philox(seed, thread, counter++);
    for (int i = 0; i < 2; i++) put(a, start + i, unit(words.at[second ? i + 2 : i]) < keep);
    second = !second;
  }"""
    else:
        loop = f"""for (i64 start = thread * {width}; start < a.count; start += threads * {width})
#pragma unroll
    for (int part = 0; part < {width}; part += 4) {{
      const Words words = philox(seed, thread, counter++);
      for (int i = 0; i < 4; i++) put(a, start + part + i, unit(words.at[i]) < keep);
    }}"""
    fields, whole = "", ""
    if dtype is not None:
        kind = TYPES[dtype]
        fields = f"const {kind.memory}* in; {kind.memory}* result; double factor;"
        number = "double" if dtype == "float64" else "float"
        value = f"{kind.loaded('a.in[at]')} * ({number})kept * ({number})a.factor"
        whole = f"a.result[at] = {kind.stored(value)};"
    return f"""{prelude()}
struct Arguments {{ i64 count; bool* out; {POSITION} double p; {fields} }};
FN void put(const Arguments& a, i64 at, bool kept) {{ a.out[at] = kept; {whole} }}
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const float keep = (float)a.p;
  const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  const i64 threads = (i64)gridDim.x * blockDim.x;
  {FIND}
  {loop}
}}
"""


def bernoulli_source(probability: str, dtype: str) -> str:
    """The kernel that draws with a probability for each element, four neighbours by one thread."""
    given, kind = TYPES[probability], TYPES[dtype]
    one, zero = (kind.stored(f"({kind.compute}){number}") for number in (1, 0))
    return f"""{prelude()}
struct Arguments {{ i64 count; {kind.memory}* out; {POSITION} const {given.memory}* p; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  {FIND}
  const Words words = philox(seed, thread, counter);
  for (int i = 0; i < 4; i++) {{
    const i64 place = thread * 4 + i;
    if (place < a.count) a.out[place] = unit(words.at[i]) <= {given.loaded("a.p[place]")} ? {one} : {zero};
  }}
}}
"""
