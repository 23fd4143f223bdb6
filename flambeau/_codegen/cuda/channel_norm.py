"""Normalisation of channels: sums over each channel, what follows from them, and what each element becomes.

Arrays are planes, where the elements of a channel of a sample lie side by side, or lines, where the channels of a place
do. Each pass over memory reads 16 bytes at a time where sizes allow it. The sums are those of differences from the
first element of the channel: so they lose nothing where the mean is far from zero.
"""

from __future__ import annotations

from typing import NamedTuple

from ..expr import Program
from .elementwise import functions, settled, steps_of
from .types import TYPES

THREADS = 256


def _head(name: str) -> str:
    kind = TYPES[name]
    return f"""{functions()}
typedef {"double" if name == "float64" else "float"} A;
typedef {kind.memory} T;
FN A load(T x) {{ return (A){kind.loaded("x")}; }}
FN T save(A x) {{ return {kind.stored("x")}; }}
"""


def _pack(width: int) -> str:
    return f"struct alignas(sizeof(T) * {width}) P {{ T at[{width}]; }};"


# ----- sums -----------------------------------------------------------------------------------------------------------

_SUMS = "struct Arguments {{ i64 channels; i64 rows; i64 places; const T* x; const T* g; const {kept}* mean; A* out; "
"""`rows` and `places`: of lines the places of all samples and 1, of planes the samples and the places of one."""


def lines_sums_source(name: str, kept: str, width: int, gradient: bool) -> str:
    """For each channel two sums over part of the lines: of differences and their squares, or of what gradients need."""
    loads, begin, step = _terms(kept, gradient, "(group + j)")
    return f"""{_head(name)}{_pack(width)}
{_SUMS.format(kept=TYPES[kept].memory)} i64 across; i64 blocks; i64 part; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  __shared__ A shared[{THREADS}][{2 * width}];
  const u32 along = blockDim.x / a.across, at = threadIdx.x / a.across, beside = threadIdx.x % a.across;
  const i64 group = ((i64)(blockIdx.x % a.blocks) * a.across + beside) * {width}, split = blockIdx.x / a.blocks;
  const i64 end = (split + 1) * a.part < a.rows ? (split + 1) * a.part : a.rows;
  A one[{width}] = {{}}, two[{width}] = {{}};
  if (group < a.channels && at < along) {{
    A centre[{width}];
    for (int j = 0; j < {width}; j++) centre[j] = {begin};
#pragma unroll 4
    for (i64 row = split * a.part + at; row < end; row += along) {{
      const i64 place = row * a.channels + group;
      {loads}
#pragma unroll
      for (int j = 0; j < {width}; j++) {{ {step} }}
    }}
  }}
  for (int j = 0; j < {width}; j++) shared[threadIdx.x][j] = one[j], shared[threadIdx.x][{width} + j] = two[j];
  __syncthreads();
  for (u32 n = along; n > 1; n = (n + 1) / 2) {{
    if (at < n / 2)
      for (int j = 0; j < {2 * width}; j++) shared[threadIdx.x][j] += shared[threadIdx.x + (n + 1) / 2 * a.across][j];
    __syncthreads();
  }}
  if (at == 0 && group < a.channels)
    for (int j = 0; j < {width}; j++) {{
      a.out[split * 2 * a.channels + group + j] = shared[threadIdx.x][j];
      a.out[(split * 2 + 1) * a.channels + group + j] = shared[threadIdx.x][{width} + j];
    }}
}}
"""


def planes_sums_source(name: str, kept: str, width: int, gradient: bool) -> str:
    """Two sums for each channel over part of the samples' planes: differences and squares, or what gradients need."""
    loads, begin, step = _terms(kept, gradient, "channel", "* a.places")
    return f"""{_head(name)}{_pack(width)}
{_SUMS.format(kept=TYPES[kept].memory)} i64 part; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  __shared__ A shared[{THREADS}][2];
  const i64 channel = blockIdx.x % a.channels, split = blockIdx.x / a.channels;
  const i64 begin = split * a.part, limit = begin + a.part < a.rows ? begin + a.part : a.rows;
  const u32 chunks = (u32)(a.places / {width});
  const i64 end = (limit - begin) * chunks;
  A one[{width}] = {{}}, two[{width}] = {{}}, centre[{width}];
  for (int j = 0; j < {width}; j++) centre[j] = {begin};
#pragma unroll 4
  for (u32 i = threadIdx.x; i < end; i += blockDim.x) {{
    const i64 place = ((begin + i / chunks) * a.channels + channel) * a.places + (i64)(i % chunks) * {width};
    {loads}
#pragma unroll
    for (int j = 0; j < {width}; j++) {{ {step} }}
  }}
  for (int j = 1; j < {width}; j++) one[0] += one[j], two[0] += two[j];
  shared[threadIdx.x][0] = one[0], shared[threadIdx.x][1] = two[0];
  __syncthreads();
  for (u32 s = blockDim.x / 2; s > 0; s /= 2) {{
    if (threadIdx.x < s)
      for (int j = 0; j < 2; j++) shared[threadIdx.x][j] += shared[threadIdx.x + s][j];
    __syncthreads();
  }}
  if (threadIdx.x == 0) {{
    a.out[split * 2 * a.channels + channel] = shared[0][0];
    a.out[(split * 2 + 1) * a.channels + channel] = shared[0][1];
  }}
}}
"""


def _terms(kept: str, gradient: bool, channel: str, spread: str = "") -> tuple[str, str, str]:
    """What is read at a place, what is taken from the elements of a channel, and what is added to both sums."""
    loads = "const P x = *(const P*)(a.x + place);"
    if not gradient:
        step = "const A d = load(x.at[j]) - centre[j]; one[j] += d, two[j] += d * d;"
        return loads, f"load(a.x[{channel}{spread}])", step
    loads += " const P g = *(const P*)(a.g + place);"
    step = "const A d = load(g.at[j]); one[j] += d, two[j] += d * (load(x.at[j]) - centre[j]);"
    return loads, f"(A){TYPES[kept].loaded(f'a.mean[{channel}]')}", step


# ----- what follows for a channel -------------------------------------------------------------------------------------


def _channel(name: str, fields: str, body: str) -> str:
    """A kernel in which some threads together have one channel, and the first of them what its sums are."""
    return f"""{_head(name)}
struct Arguments {{ i64 channels; i64 splits; i64 across; double count; double eps; const A* sums; {fields} }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  __shared__ A shared[{THREADS}][2];
  const u32 along = blockDim.x / a.across, at = threadIdx.x / a.across;
  const i64 c = (i64)blockIdx.x * a.across + threadIdx.x % a.across;
  A one = 0, two = 0;
  if (c < a.channels)
    for (i64 split = at; split < a.splits; split += along) {{
      one += a.sums[split * 2 * a.channels + c];
      two += a.sums[(split * 2 + 1) * a.channels + c];
    }}
  shared[threadIdx.x][0] = one, shared[threadIdx.x][1] = two;
  __syncthreads();
  for (u32 s = along / 2; s > 0; s /= 2) {{
    if (at < s)
      for (int j = 0; j < 2; j++) shared[threadIdx.x][j] += shared[threadIdx.x + s * a.across][j];
    __syncthreads();
  }}
  if (at || c >= a.channels) return;
  one = shared[threadIdx.x][0], two = shared[threadIdx.x][1];
  {body}
}}
"""


def statistics_source(name: str, parameters: str, kept: str, weighted: bool, biased: bool, training: bool) -> str:
    """Mean, variance and 1 / deviation of each channel, and by what its elements are multiplied and what is added.

    In evaluation mean and variance are given.
    """
    parameter, stored = TYPES[parameters], TYPES[kept]
    given = """const A centre = load(a.x[c * a.spread]), shift = one / (A)a.count;
  const A mean = centre + shift, spread = two / (A)a.count - shift * shift;
  const A variance = spread < 0 ? (A)0 : spread;"""
    if not training:
        given = f"""const A mean = (A){stored.loaded("a.mean[c]")};
  const A variance = (A){stored.loaded("a.rstd[c]")};"""
    kept_results = f"""a.variance[c] = variance;
  a.mean[c] = {stored.stored("mean")}, a.rstd[c] = {stored.stored("rstd")};"""
    return _channel(
        name,
        f"const T* x; i64 spread; const {parameter.memory}* weight; const {parameter.memory}* bias; "
        f"{stored.memory}* mean; {stored.memory}* rstd; A* variance; A* factor;",
        f"""{given}
  const A rstd = (A)1 / sqrt(variance + (A)a.eps);
  {kept_results if training else "a.variance[c] = variance;"}
  const A factor = {f"rstd * (A){parameter.loaded('a.weight[c]')}" if weighted else "rstd"};
  a.factor[c] = factor;
  a.factor[a.channels + c] = {f"(A){parameter.loaded('a.bias[c]')}" if biased else "(A)0"} - mean * factor;""",
    )


def slopes_source(name: str, parameters: str, kept: str, weighted: bool, training: bool) -> str:
    """The gradients of weight and bias, and what the gradient of an element is: a factor of the one that arrives, one
    of the element, and what is added.
    """
    parameter, stored = TYPES[parameters], TYPES[kept]
    rstd = f"(A){stored.loaded('a.rstd[c]')}"
    rest = (
        "const A slope = -factor * rstd * rstd * two / (A)a.count, level = -factor * one / (A)a.count - slope * mean;"
    )
    return _channel(
        name,
        f"const {parameter.memory}* weight; const {stored.memory}* mean; const {stored.memory}* rstd; "
        f"{parameter.memory}* of_weight; {parameter.memory}* of_bias; A* factor;",
        f"""const A mean = (A){stored.loaded("a.mean[c]")};
  const A rstd = {rstd if training else f"(A)1 / sqrt({rstd} + (A)a.eps)"};
  a.of_weight[c] = {parameter.stored("two * rstd")}, a.of_bias[c] = {parameter.stored("one")};
  const A factor = {f"rstd * (A){parameter.loaded('a.weight[c]')}" if weighted else "rstd"};
  {rest if training else "const A slope = 0, level = 0;"}
  a.factor[c] = factor, a.factor[a.channels + c] = slope, a.factor[2 * a.channels + c] = level;""",
    )


def running_source(running: str, kept: str, wide: str) -> str:
    """Running statistics move towards those of a batch."""
    stored, given = TYPES[running], TYPES[kept]
    moved = "(A){} * (A)(1 - a.momentum) + (A){} * (A)a.momentum"
    mean = moved.format(stored.loaded("a.running_mean[c]"), given.loaded("a.mean[c]"))
    variance = moved.format(stored.loaded("a.running_var[c]"), "(a.variance[c] * (A)a.factor)")
    return f"""{functions()}
typedef {TYPES[wide].compute} A;
struct Arguments {{
  i64 channels; {stored.memory}* running_mean; {stored.memory}* running_var; const {given.memory}* mean;
  const A* variance; double momentum; double factor;
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 c = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= a.channels) return;
  a.running_mean[c] = {stored.stored(mean)};
  a.running_var[c] = {stored.stored(variance)};
}}
"""


# ----- elements -------------------------------------------------------------------------------------------------------


class Epilogue(NamedTuple):
    """What becomes of normalised elements: a program of such a one, and of those of other arrays at its place."""

    program: Program
    others: int

    def fields(self) -> str:
        """The arguments of a kernel that says where the other arrays, and the results but for the first, are."""
        others = [f"const T* y{each};" for each in range(self.others)]
        return " ".join([*others, *[f"T* z{each};" for each in range(1, len(self.program.results))]])


def lines_apply_source(name: str, width: int, gradient: bool, epilogue: Epilogue | None = None) -> str:
    """Each element by the factors of its channel; a thread has the same channels in every line."""
    factors = 3 if gradient else 2
    more, before = ("", "") if epilogue is None else (epilogue.fields(), settled(epilogue.program))
    return f"""{_head(name)}{before}{_pack(width)}
struct Arguments {{
  i64 channels; i64 rows; i64 places; const T* x; const T* g; const A* factor; T* out; i64 across; i64 blocks; i64 part;
  {more}
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const u32 along = blockDim.x / a.across, at = threadIdx.x / a.across, beside = threadIdx.x % a.across;
  const i64 group = ((i64)(blockIdx.x % a.blocks) * a.across + beside) * {width}, split = blockIdx.x / a.blocks;
  const i64 end = (split + 1) * a.part < a.rows ? (split + 1) * a.part : a.rows;
  if (group >= a.channels || at >= along) return;
  A f[{factors}][{width}];
  for (int k = 0; k < {factors}; k++)
    for (int j = 0; j < {width}; j++) f[k][j] = a.factor[k * a.channels + group + j];
#pragma unroll 4
  for (i64 row = split * a.part + at; row < end; row += along) {{
    const i64 place = row * a.channels + group;
    {_apply(gradient, width, "[j]", epilogue)}
  }}
}}
"""


def planes_apply_source(name: str, width: int, gradient: bool, epilogue: Epilogue | None = None) -> str:
    """Each element by the factors of its channel; a block has part of one plane."""
    factors = 3 if gradient else 2
    more, before = ("", "") if epilogue is None else (epilogue.fields(), settled(epilogue.program))
    return f"""{_head(name)}{before}{_pack(width)}
struct Arguments {{
  i64 channels; i64 rows; i64 places; const T* x; const T* g; const A* factor; T* out; i64 parts; i64 part;
  {more}
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 plane = blockIdx.x / a.parts, channel = plane % a.channels;
  const i64 begin = blockIdx.x % a.parts * a.part;
  const i64 end = begin + a.part < a.places ? begin + a.part : a.places;
  A f[{factors}];
  for (int k = 0; k < {factors}; k++) f[k] = a.factor[k * a.channels + channel];
#pragma unroll 4
  for (i64 i = begin + (i64)threadIdx.x * {width}; i < end; i += (i64)blockDim.x * {width}) {{
    const i64 place = plane * a.places + i;
    {_apply(gradient, width, "", epilogue)}
  }}
}}
"""


def _apply(gradient: bool, width: int, channel: str, epilogue: Epilogue | None) -> str:
    read, value = "", f"f[0]{channel} * load(x.at[j]) + f[1]{channel}"
    if gradient:
        read = "const P g = *(const P*)(a.g + place); "
        value = f"f[0]{channel} * load(g.at[j]) + f[1]{channel} * load(x.at[j]) + f[2]{channel}"
    outs, step = ["out"], f"out.at[j] = save({value});"
    if epilogue is not None:
        others = range(epilogue.others)
        read = "".join([f"const P y{each} = *(const P*)(a.y{each} + place); " for each in others])
        outs += [f"z{each}" for each in range(1, len(epilogue.program.results))]
        inputs = [f"load(save({value}))", *[f"load(y{each}.at[j])" for each in others]]
        stores = [f"{out}.at[j] = save(v{each});" for out, each in zip(outs, epilogue.program.results, strict=True)]
        names = [f"in{each}" for each in range(len(inputs))]
        loads = [f"const A {name} = {text};" for name, text in zip(names, inputs, strict=True)]
        step = " ".join([*loads, *steps_of(epilogue.program, names), *stores])
    writes = " ".join([f"*(P*)(a.{out} + place) = {out};" for out in outs])
    return f"""const P x = *(const P*)(a.x + place); {read}P {", ".join(outs)};
#pragma unroll
    for (int j = 0; j < {width}; j++) {{ {step} }}
    {writes}"""
