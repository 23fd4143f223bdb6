"""Attention of 16-bit floats on tensor cores, and its gradients: weights are never written to memory.

A block has 64 queries, or in the gradients of keys and values 64 keys; each of its four warps has sixteen of them and
goes over the others in tiles. Every sum has one place and one order: results are the same in every run.
"""

from __future__ import annotations

from typing import NamedTuple

from .elementwise import functions
from .tensor_cores import tensor_cores

THREADS, TILE = 128, 64
MOST_WIDTH = 128
_MOST_AHEAD = 80
"""Of rows up to so long the next tile fits into shared memory beside the one in use."""

PLACES = {
    "forward": "query key value output sums mask kept",
    "of_queries": "query key value output sums mask kept grad of_query deltas",
    "of_keys": "query key value sums mask kept grad deltas of_key of_value",
}
"""The addresses among a kernel's arguments."""
STRIDED = {
    "forward": "query key value output",
    "of_queries": "query key value output grad of_query",
    "of_keys": "query key value grad of_key of_value",
}
"""The arrays that have a stride for the batch, the heads and the rows each, in elements."""


class Attention(NamedTuple):
    """What a kernel is written for."""

    name: str
    """Of the dtype."""
    width: int
    """Elements of a row: a multiple of 8."""
    causal: bool
    masked: bool
    drops: bool
    """Whether weights are dropped: `kept` has a byte for each, which is 0 for those."""


_COMMON = """
enum { WIDTH = %(width)d, PADDED = %(padded)d, LINE = PADDED + 8, STEPS = PADDED / 16, STAGES = %(stages)d };
enum { CAUSAL = %(causal)d, MASKED = %(masked)d, DROPS = %(drops)d };
enum { TILE = %(tile)d, OTHERS = %(others)d, PARTS = OTHERS / 8 };
typedef u16 Line[LINE];
#define LOWEST -__uint_as_float(0x7f800000u)
#define LOG2_E 1.4426950408889634f

struct Arguments {
  i64 batch, heads, shared, rows, keys; double scale, enlarged; i64 mask_step[4]; %(fields)s
};
FN const u16* at(const u16* array, const i64* step, i64 sample, i64 head) {
  return array + sample * step[0] + head * step[1];
}
template <int N> FN void fetch(Line* tile, const u16* array, i64 step, i32 first, i32 count) {
  for (i32 i = threadIdx.x; i < N * (PADDED / 8); i += %(threads)d) {
    const i32 row = i / (PADDED / 8), column = i %% (PADDED / 8) * 8;
    const bool inside = first + row < count && column < WIDTH;
    copy_ahead(&tile[row][column], array + (inside ? (first + row) * step + column : 0), inside);
  }
}
// The rows of a warp as left matrices.
FN void take_rows(u32 (*parts)[4], const Line* tile) {
  const i32 lane = threadIdx.x %% 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int k = 0; k < STEPS; k++) load_matrices(parts[k], &tile[warp * 16 + lane %% 16][k * 16 + lane / 16 * 8]);
}
// Adds the products of rows with the rows of a tile.
template <int N> FN void add_scores(float (*sums)[4], const u32 (*rows)[4], const Line* tile) {
  const i32 lane = threadIdx.x %% 32;
#pragma unroll
  for (int k = 0; k < STEPS; k++)
#pragma unroll
    for (int j = 0; j < N; j += 2) {
      u32 right[4];
      load_matrices(right, &tile[j * 8 + lane %% 8 + lane / 16 * 8][k * 16 + lane / 8 %% 2 * 8]);
      multiply_add(sums[j], rows[k], right);
      multiply_add(sums[j + 1], rows[k], right + 2);
    }
}
// Adds the rows of a tile, multiplied by weights and summed.
template <int N> FN void add_weighted(float (*sums)[4], const float (*weights)[4], const Line* tile) {
  const i32 lane = threadIdx.x %% 32;
#pragma unroll
  for (int k = 0; k < N / 2; k++) {
    const float* one = weights[2 * k];
    const float* two = weights[2 * k + 1];
    const u32 upper[2] = {pair_of(one[0], one[1]), pair_of(one[2], one[3])};
    const u32 left[4] = {upper[0], upper[1], pair_of(two[0], two[1]), pair_of(two[2], two[3])};
#pragma unroll
    for (int j = 0; j < PADDED / 8; j += 2) {
      u32 right[4];
      load_transposed(right, &tile[k * 16 + lane %% 16][j * 8 + lane / 16 * 8]);
      multiply_add(sums[j], left, right);
      multiply_add(sums[j + 1], left, right + 2);
    }
  }
}
template <int N> FN void clear(float (*sums)[4]) {
#pragma unroll
  for (int j = 0; j < N; j++) sums[j][0] = sums[j][1] = sums[j][2] = sums[j][3] = 0;
}
// Writes the rows of a warp, each multiplied by one of two factors.
FN void put_rows(u16* array, i64 step, i32 first, i32 count, const float (*sums)[4], float upper, float lower) {
  const i32 lane = threadIdx.x %% 32, row = first + threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < WIDTH / 8; j++) {
    const i32 column = j * 8 + lane %% 4 * 2;
    if (row < count) *(u32*)(array + row * step + column) = pair_of(sums[j][0] * upper, sums[j][1] * upper);
    if (row + 8 < count) *(u32*)(array + (row + 8) * step + column) = pair_of(sums[j][2] * lower, sums[j][3] * lower);
  }
}
// Whether every query of a tile sees every key of another one, so far as the arguments do not say otherwise.
FN bool all_seen(const Arguments& a, i32 row, i32 rows, i32 key, i32 keys) {
  return row + rows <= a.rows && key + keys <= a.keys && (!CAUSAL || key + keys <= row + 1);
}
// Rounded whatever comes next: kernels for other masks, and loops without any, must not fuse it with a subtraction.
#ifdef __CUDACC__
FN float multiplied(float x, float y) { return __fmul_rn(x, y); }
#else
FN float multiplied(float x, float y) { return x * y; }
#endif
// A score in powers of two; the lowest number for a key that the query does not see.
FN float score(const Arguments& a, float product, float factor, bool seen, i64 sample, i64 head, i32 row, i32 key) {
  if (!seen && (row >= a.rows || key >= a.keys || (CAUSAL && key > row))) return LOWEST;
  float found = multiplied(product, factor);
  if (MASKED) {
    const i64 place = sample * a.mask_step[0] + head * a.mask_step[1] + row * a.mask_step[2] + key * a.mask_step[3];
    found += multiplied(load16(a.mask[place]), LOG2_E);
  }
  return found;
}
// By what dropout multiplies a weight.
FN float dropout(const Arguments& a, i64 sample, i64 head, i32 row, i32 key) {
  if (!DROPS || row >= a.rows || key >= a.keys) return 1;
  return a.kept[((sample * a.heads + head) * a.rows + row) * a.keys + key] ? (float)a.enlarged : 0;
}
"""

_FORWARD = """
KERNEL_OF(%(threads)d) kernel(const __grid_constant__ Arguments a) {
  alignas(16) __shared__ u16 keys[STAGES][OTHERS][LINE];
  alignas(16) __shared__ u16 values[STAGES][OTHERS][LINE];
  const i64 pairs = a.batch * a.heads, pair = blockIdx.x %% pairs, sample = pair / a.heads, head = pair %% a.heads;
  const i32 tiles = (i32)((a.rows + TILE - 1) / TILE), first = (tiles - 1 - (i32)(blockIdx.x / pairs)) * TILE;
  const i32 lane = threadIdx.x %% 32, row = first + threadIdx.x / 32 * 16 + lane / 4;
  const u16* key = at(a.key, a.key_step, sample, head / a.shared);
  const u16* value = at(a.value, a.value_step, sample, head / a.shared);
  u32 queries[STEPS][4];
  fetch<TILE>(keys[0], at(a.query, a.query_step, sample, head), a.query_step[2], first, (i32)a.rows);
  end_group();
  wait_for_all_but<0>();
  __syncthreads();
  take_rows(queries, keys[0]);
  __syncthreads();
  const i32 count = (i32)(CAUSAL && first + TILE < a.keys ? first + TILE : a.keys);
  const i32 blocks = (count + OTHERS - 1) / OTHERS;
  const float factor = (float)a.scale * LOG2_E;
  float result[PADDED / 8][4], scores[PARTS][4], highest[2] = {LOWEST, LOWEST}, total[2] = {0, 0};
  clear<PADDED / 8>(result);
  for (i32 block = 1 - STAGES; block < blocks; block++) {
    const i32 next = block + STAGES - 1;
    if (next < blocks) {
      fetch<OTHERS>(keys[next %% STAGES], key, a.key_step[2], next * OTHERS, (i32)a.keys);
      fetch<OTHERS>(values[next %% STAGES], value, a.value_step[2], next * OTHERS, (i32)a.keys);
    }
    end_group();
    if (block < 0) continue;
    wait_for_all_but<STAGES - 1>();
    __syncthreads();
    const bool seen = all_seen(a, first, TILE, block * OTHERS, OTHERS);
    clear<PARTS>(scores);
    add_scores<PARTS>(scores, queries, keys[block %% STAGES]);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float most = highest[h];
#pragma unroll
      for (int j = 0; j < PARTS; j++)
#pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; e++) {
          const i32 at_key = block * OTHERS + j * 8 + lane %% 4 * 2 + e %% 2;
          scores[j][e] = score(a, scores[j][e], factor, seen, sample, head, row + 8 * h, at_key);
          most = fmaxf(most, scores[j][e]);
        }
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
      const float base = most == LOWEST ? 0 : most, rescale = exp2f(highest[h] - base);
      highest[h] = most;
      total[h] = multiplied(total[h], rescale);
#pragma unroll
      for (int j = 0; j < PADDED / 8; j++)
#pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; e++) result[j][e] *= rescale;
#pragma unroll
      for (int j = 0; j < PARTS; j++)
#pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; e++) {
          total[h] += scores[j][e] = exp2f(scores[j][e] - base);
          const i32 at_key = block * OTHERS + j * 8 + lane %% 4 * 2 + e %% 2;
          if (DROPS) scores[j][e] *= dropout(a, sample, head, row + 8 * h, at_key);
        }
    }
    add_weighted<PARTS>(result, scores, values[block %% STAGES]);
    __syncthreads();
  }
#pragma unroll
  for (int h = 0; h < 2; h++) {
    total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
    total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
    if (lane %% 4 == 0 && row + 8 * h < a.rows)
      a.sums[pair * a.rows + row + 8 * h] = total[h] ? (highest[h] + log2f(total[h])) / LOG2_E : LOWEST;
    total[h] = total[h] ? 1 / total[h] : 0;
  }
  u16* output = (u16*)at(a.output, a.output_step, sample, head);
  put_rows(output, a.output_step[2], first, (i32)a.rows, result, total[0], total[1]);
}
"""

_OF_QUERIES = """
KERNEL_OF(%(threads)d) kernel(const __grid_constant__ Arguments a) {
  alignas(16) __shared__ u16 keys[STAGES][OTHERS][LINE];
  alignas(16) __shared__ u16 values[STAGES][OTHERS][LINE];
  __shared__ float products[TILE];
  const i64 pairs = a.batch * a.heads, pair = blockIdx.x %% pairs, sample = pair / a.heads, head = pair %% a.heads;
  const i32 tiles = (i32)((a.rows + TILE - 1) / TILE), first = (tiles - 1 - (i32)(blockIdx.x / pairs)) * TILE;
  const i32 lane = threadIdx.x %% 32, inside = threadIdx.x / 32 * 16 + lane / 4, row = first + inside;
  const u16* key = at(a.key, a.key_step, sample, head / a.shared);
  const u16* value = at(a.value, a.value_step, sample, head / a.shared);
  u32 queries[STEPS][4], grads[STEPS][4];
  fetch<TILE>(keys[0], at(a.query, a.query_step, sample, head), a.query_step[2], first, (i32)a.rows);
  fetch<TILE>(values[0], at(a.grad, a.grad_step, sample, head), a.grad_step[2], first, (i32)a.rows);
  end_group();
  wait_for_all_but<0>();
  __syncthreads();
  take_rows(queries, keys[0]);
  take_rows(grads, values[0]);
  __syncthreads();
  fetch<TILE>(keys[0], at(a.output, a.output_step, sample, head), a.output_step[2], first, (i32)a.rows);
  end_group();
  wait_for_all_but<0>();
  __syncthreads();
  float product = 0;
  for (i32 k = threadIdx.x %% 2; k < WIDTH; k += 2)
    product += load16(keys[0][threadIdx.x / 2][k]) * load16(values[0][threadIdx.x / 2][k]);
  product += __shfl_xor_sync(0xffffffffu, product, 1);
  if (threadIdx.x %% 2 == 0) {
    products[threadIdx.x / 2] = product;
    if (first + threadIdx.x / 2 < a.rows) a.deltas[pair * a.rows + first + threadIdx.x / 2] = product;
  }
  __syncthreads();
  float delta[2], sums[2];
#pragma unroll
  for (int h = 0; h < 2; h++) {
    delta[h] = products[inside + 8 * h];
    sums[h] = row + 8 * h < a.rows ? a.sums[pair * a.rows + row + 8 * h] * LOG2_E : 0;
    if (sums[h] == LOWEST) sums[h] = 0;
  }
  const i32 count = (i32)(CAUSAL && first + TILE < a.keys ? first + TILE : a.keys);
  const i32 blocks = (count + OTHERS - 1) / OTHERS;
  const float factor = (float)a.scale * LOG2_E;
  float result[PADDED / 8][4], scores[PARTS][4], through[PARTS][4];
  clear<PADDED / 8>(result);
  for (i32 block = 1 - STAGES; block < blocks; block++) {
    const i32 next = block + STAGES - 1;
    if (next < blocks) {
      fetch<OTHERS>(keys[next %% STAGES], key, a.key_step[2], next * OTHERS, (i32)a.keys);
      fetch<OTHERS>(values[next %% STAGES], value, a.value_step[2], next * OTHERS, (i32)a.keys);
    }
    end_group();
    if (block < 0) continue;
    wait_for_all_but<STAGES - 1>();
    __syncthreads();
    clear<PARTS>(scores);
    clear<PARTS>(through);
    add_scores<PARTS>(scores, queries, keys[block %% STAGES]);
    add_scores<PARTS>(through, grads, values[block %% STAGES]);
    const bool seen = all_seen(a, first, TILE, block * OTHERS, OTHERS);
#pragma unroll
    for (int j = 0; j < PARTS; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const i32 at_key = block * OTHERS + j * 8 + lane %% 4 * 2 + e %% 2;
        const float found = score(a, scores[j][e], factor, seen, sample, head, row + e / 2 * 8, at_key);
        if (DROPS) through[j][e] *= dropout(a, sample, head, row + e / 2 * 8, at_key);
        scores[j][e] = exp2f(found - sums[e / 2]) * (through[j][e] - delta[e / 2]);
      }
    add_weighted<PARTS>(result, scores, keys[block %% STAGES]);
    __syncthreads();
  }
  u16* of_query = (u16*)at(a.of_query, a.of_query_step, sample, head);
  put_rows(of_query, a.of_query_step[2], first, (i32)a.rows, result, (float)a.scale, (float)a.scale);
}
"""

_OF_KEYS = """
KERNEL_OF(%(threads)d) kernel(const __grid_constant__ Arguments a) {
  alignas(16) __shared__ u16 queries[STAGES][TILE][LINE];
  alignas(16) __shared__ u16 grads[STAGES][TILE][LINE];
  __shared__ float sums[STAGES][OTHERS], deltas[STAGES][OTHERS];
  const i64 owners = a.heads / a.shared, pairs = a.batch * owners, pair = blockIdx.x %% pairs;
  const i64 sample = pair / owners, owner = pair %% owners;
  const i32 first = (i32)(blockIdx.x / pairs) * TILE, lane = threadIdx.x %% 32;
  const i32 key = first + threadIdx.x / 32 * 16 + lane / 4;
  u32 keys[STEPS][4], values[STEPS][4];
  fetch<TILE>(queries[0], at(a.key, a.key_step, sample, owner), a.key_step[2], first, (i32)a.keys);
  fetch<TILE>(grads[0], at(a.value, a.value_step, sample, owner), a.value_step[2], first, (i32)a.keys);
  end_group();
  wait_for_all_but<0>();
  __syncthreads();
  take_rows(keys, queries[0]);
  take_rows(values, grads[0]);
  __syncthreads();
  const i32 each = (i32)((a.rows + OTHERS - 1) / OTHERS), begin = CAUSAL ? first / OTHERS : 0;
  const i32 blocks = each > begin ? (each - begin) * (i32)a.shared : 0;
  const float factor = (float)a.scale * LOG2_E;
  float of_key[PADDED / 8][4], of_value[PADDED / 8][4], scores[PARTS][4], through[PARTS][4];
  clear<PADDED / 8>(of_key);
  clear<PADDED / 8>(of_value);
  for (i32 block = 1 - STAGES; block < blocks; block++) {
    const i32 next = block + STAGES - 1;
    if (next < blocks) {
      const i64 head = owner * a.shared + next / (each - begin);
      const i32 start = (begin + next %% (each - begin)) * OTHERS;
      const u16* query = at(a.query, a.query_step, sample, head);
      const u16* grad = at(a.grad, a.grad_step, sample, head);
      fetch<OTHERS>(queries[next %% STAGES], query, a.query_step[2], start, (i32)a.rows);
      fetch<OTHERS>(grads[next %% STAGES], grad, a.grad_step[2], start, (i32)a.rows);
      if (threadIdx.x < OTHERS) {
        const i64 row = start + threadIdx.x, place = (sample * a.heads + head) * a.rows + row;
        const float sum = row < a.rows ? a.sums[place] * LOG2_E : 0;
        sums[next %% STAGES][threadIdx.x] = sum == LOWEST ? 0 : sum;
        deltas[next %% STAGES][threadIdx.x] = row < a.rows ? a.deltas[place] : 0;
      }
    }
    end_group();
    if (block < 0) continue;
    wait_for_all_but<STAGES - 1>();
    __syncthreads();
    const i64 head = owner * a.shared + block / (each - begin);  // of the queries in use
    const i32 start = (begin + block %% (each - begin)) * OTHERS;
    clear<PARTS>(scores);
    clear<PARTS>(through);
    add_scores<PARTS>(scores, keys, queries[block %% STAGES]);
    add_scores<PARTS>(through, values, grads[block %% STAGES]);
    const bool seen = all_seen(a, start, OTHERS, first, TILE);
#pragma unroll
    for (int j = 0; j < PARTS; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const i32 beside = j * 8 + lane %% 4 * 2 + e %% 2;
        const float found = score(a, scores[j][e], factor, seen, sample, head, start + beside, key + e / 2 * 8);
        scores[j][e] = exp2f(found - sums[block %% STAGES][beside]);
        const float factor_of = dropout(a, sample, head, start + beside, key + e / 2 * 8);
        through[j][e] = scores[j][e] * (through[j][e] * factor_of - deltas[block %% STAGES][beside]);
        scores[j][e] *= factor_of;
      }
    add_weighted<PARTS>(of_value, scores, grads[block %% STAGES]);
    add_weighted<PARTS>(of_key, through, queries[block %% STAGES]);
    __syncthreads();
  }
  u16* to_key = (u16*)at(a.of_key, a.of_key_step, sample, owner);
  u16* to_value = (u16*)at(a.of_value, a.of_value_step, sample, owner);
  put_rows(to_key, a.of_key_step[2], first, (i32)a.keys, of_key, (float)a.scale, (float)a.scale);
  put_rows(to_value, a.of_value_step[2], first, (i32)a.keys, of_value, 1, 1);
}
"""
_KERNELS = {"forward": _FORWARD, "of_queries": _OF_QUERIES, "of_keys": _OF_KEYS}
_TYPES = {"sums": "float", "deltas": "float", "kept": "const u8"}


def attention_source(kernel: str, written_for: Attention) -> str:
    """One of the three kernels: "forward", "of_queries", which also leaves products of rows behind, and "of_keys".

    Its fields: sizes, `scale`, by what dropout multiplies the weights that it keeps, the strides of the mask, the
    addresses `PLACES`, and the strides of `STRIDED`.
    """
    name, width, causal, masked, drops = written_for
    padded = -(-width // 16) * 16
    ahead = padded <= _MOST_AHEAD
    places = [f"{_TYPES.get(each, 'const u16')}* {each};" for each in PLACES[kernel].split()]
    steps = [f"i64 {each}_step[3];" for each in STRIDED[kernel].split()]
    numbers = {
        "width": width, "padded": padded, "causal": causal, "masked": masked, "drops": drops, "tile": TILE,
        "threads": THREADS,
        "stages": 1 + ahead, "others": TILE if ahead or kernel != "of_keys" else TILE // 2,
        "fields": " ".join(places + steps),
    }  # fmt: skip
    return functions() + tensor_cores(name) + (_COMMON + _KERNELS[kernel]) % numbers
