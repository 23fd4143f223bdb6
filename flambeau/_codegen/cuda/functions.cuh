// What the generated kernels are made of: types, conversions, and a function for each operation on one element, with
// the names that programs give their steps. NVRTC compiles it, and needs no other file. Where no GPU compiler reads it,
// the tests' stand-in does, for which a C++ compiler is enough.
#ifdef __CUDACC__
#define FN static __device__ __forceinline__
#define KERNEL extern "C" __global__ void
#define KERNEL_OF(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700  // Maxwell and Pascal copy the arguments
#undef __grid_constant__
#define __grid_constant__
#endif
#else
#include <cmath>
#include <cstring>
#define FN static inline
#define KERNEL static void
#define KERNEL_OF(...) static void
#define __grid_constant__
#define __restrict__
#define __shared__ static
struct Place { unsigned int x = 0, y = 0, z = 0; };
static Place blockIdx, threadIdx, blockDim, gridDim;
static void (*other_threads)() = [] {};  // lets the other threads of the block go as far, where there are any
static inline void __syncthreads() { other_threads(); }
template <class T> static inline T __shfl_xor_sync(unsigned int, T value, unsigned int distance) {
  static T values[1024];
  values[threadIdx.x] = value;
  __syncthreads();
  T found = values[threadIdx.x ^ distance];
  __syncthreads();
  return found;
}
template <class T> static inline T atomicCAS(T* at, T expected, T now) {
  T before = *at;
  if (before == expected) *at = now;
  return before;
}
static inline float __uint_as_float(unsigned int bits) { float x; std::memcpy(&x, &bits, 4); return x; }
static inline unsigned int __float_as_uint(float x) { unsigned int bits; std::memcpy(&bits, &x, 4); return bits; }
#endif
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

// ----- 16-bit floats: in memory as bits, in registers as float ---------------------------------------------------------

#ifdef __CUDACC__
FN float from_float16(u16 bits) { float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x; }
FN u16 to_float16(float x) { u16 bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); return bits; }
FN u16 to_float16(double x) { u16 bits; asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x)); return bits; }
#else
#ifdef __aarch64__
typedef __fp16 half_float;
#else
typedef _Float16 half_float;
#endif
FN float from_float16(u16 bits) { half_float x; std::memcpy(&x, &bits, 2); return (float)x; }
FN u16 to_float16(float x) { half_float y = (half_float)x; u16 bits; std::memcpy(&bits, &y, 2); return bits; }
FN u16 to_float16(double x) { half_float y = (half_float)x; u16 bits; std::memcpy(&bits, &y, 2); return bits; }
#endif
FN float from_bfloat16(u16 bits) { return __uint_as_float((u32)bits << 16); }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
FN u16 to_bfloat16(float x) { u16 bits; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); return bits; }
#else
FN u16 to_bfloat16(float x) {
  u32 bits = __float_as_uint(x);
  if (x != x) return (u16)((bits >> 16) | 0x40);
  return (u16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
#endif
FN u16 to_bfloat16(double x) { return to_bfloat16((float)x); }
FN float round_float16(float x) { return from_float16(to_float16(x)); }
FN float round_bfloat16(float x) { return from_bfloat16(to_bfloat16(x)); }

// ----- complex numbers -------------------------------------------------------------------------------------------------

#ifdef __CUDACC__
#define FN_ __device__ __forceinline__
#else
#define FN_ inline
#endif
template <class T> struct cx {
  T re, im;
  static FN_ cx make(T re, T im) { cx z; z.re = re; z.im = im; return z; }
};
typedef cx<float> c64;
typedef cx<double> c128;
#define CX template <class T> FN

// ----- conversions -----------------------------------------------------------------------------------------------------

template <class To, class From> struct Cast { static FN_ To of(From x) { return (To)x; } };
template <class From> struct Cast<bool, From> { static FN_ bool of(From x) { return x != (From)0; } };
template <class To, class T> struct Cast<To, cx<T>> { static FN_ To of(cx<T> z) { return (To)z.re; } };
template <class T> struct Cast<bool, cx<T>> { static FN_ bool of(cx<T> z) { return z.re != 0 || z.im != 0; } };
template <class T, class From> struct Cast<cx<T>, From> { static FN_ cx<T> of(From x) { return cx<T>::make((T)x, 0); } };
template <class T, class S> struct Cast<cx<T>, cx<S>> {
  static FN_ cx<T> of(cx<S> z) { return cx<T>::make((T)z.re, (T)z.im); }
};

// ----- arithmetic ------------------------------------------------------------------------------------------------------

#define T1 template <class T> FN T
#define T2 template <class T> FN bool
FN bool is_nan(float x) { return x != x; }
FN bool is_nan(double x) { return x != x; }
template <class T> FN bool is_nan(T) { return false; }

T1 f_add(T x, T y) { return x + y; }
FN bool f_add(bool x, bool y) { return x | y; }
T1 f_subtract(T x, T y) { return x - y; }
T1 f_multiply(T x, T y) { return x * y; }
FN bool f_multiply(bool x, bool y) { return x & y; }
FN float f_divide(float x, float y) { return x / y; }
FN double f_divide(double x, double y) { return x / y; }
T1 f_negative(T x) { return -x; }
T1 f_positive(T x) { return x; }
T1 f_conjugate(T x) { return x; }
T1 f_square(T x) { return x * x; }
FN bool f_square(bool x) { return x; }
T1 f_absolute(T x) { return x < (T)0 ? (T)-x : x; }
FN float f_absolute(float x) { return fabsf(x); }
FN double f_absolute(double x) { return fabs(x); }
FN bool f_absolute(bool x) { return x; }
FN float f_fabs(float x) { return fabsf(x); }
FN double f_fabs(double x) { return fabs(x); }
T1 f_reciprocal(T x) { return (T)((T)1 / x); }
T1 f_sign(T x) { return (T)((x > (T)0) - (x < (T)0)); }
FN float f_sign(float x) { return x != x ? x : (float)((x > 0) - (x < 0)); }
FN double f_sign(double x) { return x != x ? x : (double)((x > 0) - (x < 0)); }
T1 f_maximum(T x, T y) { return is_nan(x) || x > y ? x : y; }
T1 f_minimum(T x, T y) { return is_nan(x) || x < y ? x : y; }
T1 f_fmax(T x, T y) { return is_nan(y) || x > y ? x : y; }
T1 f_fmin(T x, T y) { return is_nan(y) || x < y ? x : y; }

// Of integers, quotients are rounded down and remainders have the divisor's sign; by zero both are zero.
T1 f_floor_divide(T x, T y) {
  if (y == 0) return 0;
  if (y == (T)-1 && (T)-1 < (T)0) return (T)(-(u64)x);
  T q = (T)(x / y);
  return (T)((q * y != x && ((x < 0) != (y < 0))) ? q - 1 : q);
}
T1 f_remainder(T x, T y) {
  if (y == 0 || (y == (T)-1 && (T)-1 < (T)0)) return 0;
  T r = (T)(x % y);
  return (T)((r != 0 && ((r < 0) != (y < 0))) ? r + y : r);
}
T1 f_fmod(T x, T y) { return y == 0 || (y == (T)-1 && (T)-1 < (T)0) ? (T)0 : (T)(x % y); }
FN float f_fmod(float x, float y) { return fmodf(x, y); }
FN double f_fmod(double x, double y) { return fmod(x, y); }
template <class T> FN T float_remainder(T x, T y) {
  if (y == 0) return x / y * 0;
  T r = f_fmod(x, y);
  if (r == 0) return copysign((T)0, y);
  return (r < 0) != (y < 0) ? r + y : r;
}
template <class T> FN T float_floor_divide(T x, T y) {
  if (y == 0) return x / y;
  T r = f_fmod(x, y), q = (x - r) / y;
  if (r != 0 && ((r < 0) != (y < 0))) q -= 1;
  if (q == 0) return copysign((T)0, x / y);
  T down = floor(q);
  return q - down > (T)0.5 ? down + 1 : down;
}
FN float f_remainder(float x, float y) { return float_remainder(x, y); }
FN double f_remainder(double x, double y) { return float_remainder(x, y); }
FN float f_floor_divide(float x, float y) { return float_floor_divide(x, y); }
FN double f_floor_divide(double x, double y) { return float_floor_divide(x, y); }
T1 f_power(T x, T y) {
  if (y < (T)0) return x == (T)1 ? (T)1 : x == (T)-1 ? (y & 1 ? (T)-1 : (T)1) : (T)0;
  T result = 1;
  for (u64 left = (u64)y; left; left >>= 1) {
    if (left & 1) result = (T)(result * x);
    x = (T)(x * x);
  }
  return result;
}
FN float f_power(float x, float y) { return y == 2 ? x * x : powf(x, y); }
FN double f_power(double x, double y) { return y == 2 ? x * x : pow(x, y); }
T1 f_gcd(T x, T y) {
  x = f_absolute(x), y = f_absolute(y);
  while (y) { T rest = (T)(x % y); x = y; y = rest; }
  return x;
}
T1 f_lcm(T x, T y) { T d = f_gcd(x, y); return d == 0 ? (T)0 : f_absolute((T)(x / d * y)); }
FN float f_float_power(float x, float y) { return powf(x, y); }
FN double f_float_power(double x, double y) { return pow(x, y); }

// ----- comparisons, logic, bits -----------------------------------------------------------------------------------------

T2 f_less(T x, T y) { return x < y; }
T2 f_less_equal(T x, T y) { return x <= y; }
T2 f_greater(T x, T y) { return x > y; }
T2 f_greater_equal(T x, T y) { return x >= y; }
T2 f_equal(T x, T y) { return x == y; }
T2 f_not_equal(T x, T y) { return x != y; }
T2 truth(T x) { return Cast<bool, T>::of(x); }
T2 f_logical_and(T x, T y) { return truth(x) && truth(y); }
T2 f_logical_or(T x, T y) { return truth(x) || truth(y); }
T2 f_logical_xor(T x, T y) { return truth(x) != truth(y); }
T2 f_logical_not(T x) { return !truth(x); }
T1 f_bitwise_and(T x, T y) { return x & y; }
T1 f_bitwise_or(T x, T y) { return x | y; }
T1 f_bitwise_xor(T x, T y) { return x ^ y; }
T1 f_invert(T x) { return ~x; }
FN bool f_invert(bool x) { return !x; }
T1 f_left_shift(T x, T y) { return (u64)(i64)y < sizeof(T) * 8 ? (T)((u64)x << y) : (T)0; }
T1 f_right_shift(T x, T y) { return (u64)(i64)y < sizeof(T) * 8 ? (T)(x >> y) : (T)(x < (T)0 ? -1 : 0); }
T2 f_isnan(T x) { return is_nan(x); }
T2 f_isinf(T) { return false; }
FN bool f_isinf(float x) { return fabsf(x) == __uint_as_float(0x7f800000u); }
FN bool f_isinf(double x) { return fabs(x) == (double)__uint_as_float(0x7f800000u); }
T2 f_isfinite(T) { return true; }
FN bool f_isfinite(float x) { return fabsf(x) < __uint_as_float(0x7f800000u); }
FN bool f_isfinite(double x) { return fabs(x) < (double)__uint_as_float(0x7f800000u); }
T2 f_signbit(T x) { return x < (T)0; }
FN bool f_signbit(float x) { return copysignf(1.0f, x) < 0; }
FN bool f_signbit(double x) { return copysign(1.0, x) < 0; }
template <class T> FN T f_select(bool condition, T x, T y) { return condition ? x : y; }
FN float f_round_float16(float x) { return round_float16(x); }
FN float f_round_bfloat16(float x) { return round_bfloat16(x); }

// ----- functions of floats ----------------------------------------------------------------------------------------------

#define ONE(name, single, twice) \
  FN float f_##name(float x) { return single(x); } \
  FN double f_##name(double x) { return twice(x); }
#define TWO(name, single, twice) \
  FN float f_##name(float x, float y) { return single(x, y); } \
  FN double f_##name(double x, double y) { return twice(x, y); }
ONE(exp, expf, exp)
ONE(exp2, exp2f, exp2)
ONE(expm1, expm1f, expm1)
ONE(log, logf, log)
ONE(log2, log2f, log2)
ONE(log10, log10f, log10)
ONE(log1p, log1pf, log1p)
ONE(sqrt, sqrtf, sqrt)
ONE(cbrt, cbrtf, cbrt)
ONE(sin, sinf, sin)
ONE(cos, cosf, cos)
ONE(tan, tanf, tan)
ONE(arcsin, asinf, asin)
ONE(arccos, acosf, acos)
ONE(arctan, atanf, atan)
ONE(sinh, sinhf, sinh)
ONE(cosh, coshf, cosh)
ONE(tanh, tanhf, tanh)
ONE(arcsinh, asinhf, asinh)
ONE(arccosh, acoshf, acosh)
ONE(arctanh, atanhf, atanh)
ONE(erf, erff, erf)
// The larger of two numbers, NaN if one of them is, in one instruction: which NaN it is, and which zero, is nobody's.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
FN float f_larger(float x, float y) {
  float z;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
#else
FN float f_larger(float x, float y) { return f_maximum(x, y); }
#endif
FN double f_larger(double x, double y) { return f_maximum(x, y); }
// erf with an error of 1.5e-7 (Abramowitz and Stegun 7.1.26), half as many instructions: for what is added to 1, and
// rounded to 16 bits in the end.
#ifdef __CUDACC__
FN float quick_exp2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
FN float quick_reciprocal(float x) { return __fdividef(1.0f, x); }
#else
FN float quick_exp2(float x) { return exp2f(x); }
FN float quick_reciprocal(float x) { return 1.0f / x; }
#endif
// exp for what is rounded to 16 bits in the end, in a third of the instructions: off by 2^-22, and |x| * 2^-24.
FN float f_exp_for_half(float x) { return quick_exp2(x * 1.4426950408889634f); }
FN float f_erf_beside_one(float x) {
  const float z = fabsf(x), t = quick_reciprocal(fmaf(0.3275911f, z, 1.0f));
  float sum = fmaf(1.061405429f, t, -1.453152027f);
  sum = fmaf(sum, t, 1.421413741f);
  sum = fmaf(sum, t, -0.284496736f);
  sum = fmaf(sum, t, 0.254829592f);
  const float found = fmaf(-sum * t, quick_exp2(z * z * -1.4426950408889634f), 1.0f);
  return copysignf(found, x);
}
ONE(erfc, erfcf, erfc)
#ifdef __CUDACC__
ONE(erfinv, erfinvf, erfinv)
ONE(rsqrt, rsqrtf, rsqrt)
#else
FN float f_rsqrt(float x) { return 1 / sqrtf(x); }
FN double f_rsqrt(double x) { return 1 / sqrt(x); }
FN double f_erfinv(double y) {  // Newton's method: slow, and good enough to compare with
  if (!(y > -1 && y < 1)) return y == 1 ? INFINITY : y == -1 ? -INFINITY : NAN;
  double w = log1p(-y * y), t = 4.330746750799873 + w / 2, x = copysign(sqrt(sqrt(t * t - w / 0.147) - t), y);
  for (int i = 0; i < 6; i++) x -= (y < 0 ? erf(x) - y : -(erfc(x) - (1 - y))) / (1.1283791670955126 * exp(-x * x));
  return x;
}
FN float f_erfinv(float y) { return (float)f_erfinv((double)y); }
#endif
T1 f_floor(T x) { return x; }
T1 f_ceil(T x) { return x; }
T1 f_trunc(T x) { return x; }
T1 f_rint(T x) { return x; }
ONE(floor, floorf, floor)
ONE(ceil, ceilf, ceil)
ONE(trunc, truncf, trunc)
ONE(rint, rintf, rint)
FN float f_fma(float x, float y, float z) { return fmaf(x, y, z); }
FN double f_fma(double x, double y, double z) { return fma(x, y, z); }
TWO(arctan2, atan2f, atan2)
TWO(hypot, hypotf, hypot)
TWO(copysign, copysignf, copysign)
TWO(nextafter, nextafterf, nextafter)
FN float f_ldexp(float x, i64 n) { return ldexpf(x, n > 2000 ? 2000 : n < -2000 ? -2000 : (int)n); }
FN double f_ldexp(double x, i64 n) { return ldexp(x, n > 5000 ? 5000 : n < -5000 ? -5000 : (int)n); }
FN float f_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
FN double f_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
template <class T> FN T log_add(T x, T y) {
  if (x == y) return x + (T)0.69314718055994530942;
  T d = x - y;
  return d > 0 ? x + f_log1p(f_exp(-d)) : d <= 0 ? y + f_log1p(f_exp(d)) : d;
}
template <class T> FN T log_add2(T x, T y) {
  if (x == y) return x + 1;
  T d = x - y, scale = (T)1.44269504088896340736;
  return d > 0 ? x + f_log1p(f_exp2(-d)) * scale : d <= 0 ? y + f_log1p(f_exp2(d)) * scale : d;
}
TWO(logaddexp, log_add, log_add)
TWO(logaddexp2, log_add2, log_add2)
FN float f_heaviside(float x, float y) { return x != x ? x : x == 0 ? y : (float)(x > 0); }
FN double f_heaviside(double x, double y) { return x != x ? x : x == 0 ? y : (double)(x > 0); }
FN float f_deg2rad(float x) { return x * 0.017453292519943295769f; }
FN double f_deg2rad(double x) { return x * 0.017453292519943295769; }
FN float f_rad2deg(float x) { return x * 57.295779513082320877f; }
FN double f_rad2deg(double x) { return x * 57.295779513082320877; }

// ----- complex arithmetic ------------------------------------------------------------------------------------------------

CX cx<T> f_add(cx<T> x, cx<T> y) { return cx<T>::make(x.re + y.re, x.im + y.im); }
CX cx<T> f_subtract(cx<T> x, cx<T> y) { return cx<T>::make(x.re - y.re, x.im - y.im); }
CX cx<T> f_multiply(cx<T> x, cx<T> y) { return cx<T>::make(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re); }
CX cx<T> f_divide(cx<T> x, cx<T> y) {
  if (f_absolute(y.re) >= f_absolute(y.im)) {
    if (y.re == 0 && y.im == 0) return cx<T>::make(x.re / f_absolute(y.re), x.im / f_absolute(y.re));
    T ratio = y.im / y.re, scale = 1 / (y.re + y.im * ratio);
    return cx<T>::make((x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale);
  }
  T ratio = y.re / y.im, scale = 1 / (y.im + y.re * ratio);
  return cx<T>::make((x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale);
}
CX cx<T> f_negative(cx<T> z) { return cx<T>::make(-z.re, -z.im); }
CX cx<T> f_conjugate(cx<T> z) { return cx<T>::make(z.re, -z.im); }
CX cx<T> f_square(cx<T> z) { return f_multiply(z, z); }
CX cx<T> f_reciprocal(cx<T> z) { return f_divide(cx<T>::make(1, 0), z); }
CX T f_absolute(cx<T> z) { return f_hypot(z.re, z.im); }
CX bool f_equal(cx<T> x, cx<T> y) { return x.re == y.re && x.im == y.im; }
CX bool f_not_equal(cx<T> x, cx<T> y) { return x.re != y.re || x.im != y.im; }
CX bool f_isnan(cx<T> z) { return is_nan(z.re) || is_nan(z.im); }
CX bool f_isinf(cx<T> z) { return f_isinf(z.re) || f_isinf(z.im); }
CX bool f_isfinite(cx<T> z) { return f_isfinite(z.re) && f_isfinite(z.im); }
