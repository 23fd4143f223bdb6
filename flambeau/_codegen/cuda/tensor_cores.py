"""What kernels on tensor cores are made of: products of small matrices of 16-bit floats, and how tiles get there.

A warp multiplies 16 x 16 by 16 x 8 elements and adds the product to 16 x 8 floats. Lane `l` has of the left matrix
rows l / 4 and l / 4 + 8 at columns 2 (l % 4) and the next, and at those eight further; of the right one column l / 4 at
the same positions; of the sums the rows of the left matrix at columns 2 (l % 4) and the next.

The tests' stand-in has no such instructions: there the lanes show each other what they hold.
"""

from __future__ import annotations

from .types import TYPES

LEAST_GENERATION = 80
"""The compute capability from which on devices have these instructions, times ten."""

_ON_DEVICE = """
#if __CUDA_ARCH__ >= 800
FN u32 pair_of(float first, float second) {
  u32 pair;
  asm("cvt.rn.%(kind)sx2.f32 %%0, %%1, %%2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}
FN void multiply_add(float* sums, const u32* left, const u32* right) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.%(kind)s.%(kind)s.f32 "
      "{%%0, %%1, %%2, %%3}, {%%4, %%5, %%6, %%7}, {%%8, %%9}, {%%0, %%1, %%2, %%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}
FN void load_matrices(u32* parts, const u16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%%0, %%1, %%2, %%3}, [%%4];" : "=r"(parts[0]), "=r"(parts[1]),
      "=r"(parts[2]), "=r"(parts[3]) : "r"((u32)__cvta_generic_to_shared(row)) : "memory");
}
FN void load_transposed(u32* parts, const u16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%%0, %%1, %%2, %%3}, [%%4];" : "=r"(parts[0]),
      "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3]) : "r"((u32)__cvta_generic_to_shared(row)) : "memory");
}
FN void copy_ahead(u16* to, const u16* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%%0], [%%1], 16, %%2;" :: "r"((u32)__cvta_generic_to_shared(to)), "l"(from),
      "r"(inside ? 16 : 0) : "memory");
}
FN void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> FN void wait_for_all_but() { asm volatile("cp.async.wait_group %%0;" :: "n"(N) : "memory"); }
#else  // never run there: for compilers that read the kernel for every device
FN u32 pair_of(float, float) { return 0; }
FN void multiply_add(float*, const u32*, const u32*) {}
FN void load_matrices(u32*, const u16*) {}
FN void load_transposed(u32*, const u16*) {}
FN void copy_ahead(u16*, const u16*, bool) {}
FN void end_group() {}
template <int N> FN void wait_for_all_but() {}
#endif
"""
_ON_HOST = """
FN u32 pair_of(float first, float second) { return save16(first) | (u32)save16(second) << 16; }
struct Lane { u32 left[4], right[2]; const u16* row; };
static Lane lanes[1024];
FN float half_of(u32 pair, int k) { return load16((u16)(pair >> 16 * (k & 1))); }
FN void multiply_add(float* sums, const u32* left, const u32* right) {
  std::memcpy(lanes[threadIdx.x].left, left, 16);
  std::memcpy(lanes[threadIdx.x].right, right, 8);
  __syncthreads();
  const int first = threadIdx.x / 32 * 32, lane = threadIdx.x % 32;
  for (int e = 0; e < 4; e++)
    for (int k = 0; k < 16; k++) {
      const Lane& row = lanes[first + lane / 4 * 4 + k % 8 / 2];
      const Lane& column = lanes[first + (lane % 4 * 2 + e % 2) * 4 + k % 8 / 2];
      sums[e] += half_of(row.left[e / 2 + k / 8 * 2], k) * half_of(column.right[k / 8], k);
    }
  __syncthreads();
}
FN void gather_matrices(u32* parts, const u16* row, bool transposed) {
  lanes[threadIdx.x].row = row;
  __syncthreads();
  const int first = threadIdx.x / 32 * 32, lane = threadIdx.x % 32, one = lane / 4, two = lane % 4 * 2;
  for (int m = 0; m < 4; m++) {
    const Lane* rows = lanes + first + 8 * m;
    parts[m] = transposed ? rows[two].row[one] | (u32)rows[two + 1].row[one] << 16
                          : rows[one].row[two] | (u32)rows[one].row[two + 1] << 16;
  }
  __syncthreads();
}
FN void load_matrices(u32* parts, const u16* row) { gather_matrices(parts, row, false); }
FN void load_transposed(u32* parts, const u16* row) { gather_matrices(parts, row, true); }
FN void copy_ahead(u16* to, const u16* from, bool inside) {
  for (int i = 0; i < 8; i++) to[i] = inside ? from[i] : 0;
}
FN void end_group() {}
template <int N> FN void wait_for_all_but() {}
"""


def tensor_cores(name: str) -> str:
    """The functions for 16-bit floats of this name.

    `load_matrices` and `load_transposed` take four 8 x 8 matrices from rows in shared memory, eight lanes pointing to
    those of each; `copy_ahead` brings 16 bytes there, or zeros; `pair_of` rounds two numbers.
    """
    kind = TYPES[name]
    on_device = _ON_DEVICE % {"kind": {"float16": "f16", "bfloat16": "bf16"}[name]}
    return f"""
FN float load16(u16 bits) {{ return {kind.loaded("bits")}; }}
#ifdef __CUDACC__{on_device}#else
FN u16 save16(float x) {{ return {kind.stored("x")}; }}{_ON_HOST}#endif
"""
