// Philox 4x32-10 as PyTorch's CUDA kernels use it: the counter counts the draws of a thread, its upper half is the thread.
struct Words { u32 at[4]; };

FN u32 high_product(u32 a, u32 b) { return (u32)(((u64)a * b) >> 32); }

FN Words philox(u64 seed, u64 thread, u64 counter) {
  u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = (u32)thread, c3 = (u32)(thread >> 32);
  u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const u32 h0 = high_product(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
    const u32 h1 = high_product(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
    c0 = h1 ^ c1 ^ k0, c1 = l1, c2 = h0 ^ c3 ^ k1, c3 = l0;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  Words words;
  words.at[0] = c0, words.at[1] = c1, words.at[2] = c2, words.at[3] = c3;
  return words;
}

// Numbers in (0, 1].
FN float unit(u32 x) { return x * 2.3283064365386963e-10f + (2.3283064365386963e-10f / 2.0f); }
FN double unit(u32 x, u32 y) {
  const u64 z = (u64)x ^ ((u64)y << 21);
  return z * 1.1102230246251565e-16 + (1.1102230246251565e-16 / 2.0);
}

#ifdef __CUDACC__
#define QUICK(name) __##name##f
#else
#define QUICK(name) name##f
static inline void sincospi(double x, double* s, double* c) { *s = sin(x * M_PI), *c = cos(x * M_PI); }
#endif

// What is drawn from one block of words: `Draw<T>::Numbers`, four for float and two for double.
template <class T> struct Draw;
template <> struct Draw<float> {
  enum { COUNT = 4 };
  static FN_ void uniform(const Words& w, float* r) {
    for (int i = 0; i < 4; i++) r[i] = unit(w.at[i]);
  }
  static FN_ void normal(const Words& w, float* r) {
    for (int i = 0; i < 4; i += 2) {
      const float u = unit(w.at[i]);
      const float v = w.at[i + 1] * 1.46291807e-9f + (1.46291807e-9f / 2.0f);
      const float s = sqrtf(-2.0f * logf(u));
      QUICK(sincos)(v, &r[i], &r[i + 1]);
      r[i] *= s, r[i + 1] *= s;
    }
  }
};
template <> struct Draw<double> {
  enum { COUNT = 2 };
  static FN_ void uniform(const Words& w, double* r) {
    r[0] = unit(w.at[0], w.at[1]), r[1] = unit(w.at[2], w.at[3]);
  }
  static FN_ void normal(const Words& w, double* r) {
    const u64 z = (u64)w.at[2] ^ ((u64)w.at[3] << 21);
    const double u = unit(w.at[0], w.at[1]);
    const double v = z * (1.1102230246251565e-16 * 2.0) + 1.1102230246251565e-16;
    const double s = sqrt(-2.0 * log(u));
    sincospi(v, &r[0], &r[1]);
    r[0] *= s, r[1] *= s;
  }
};
template <> struct Draw<u32> {
  enum { COUNT = 4 };
  static FN_ void uniform(const Words& w, u32* r) {
    for (int i = 0; i < 4; i++) r[i] = w.at[i];
  }
};
template <> struct Draw<u64> {
  enum { COUNT = 2 };
  static FN_ void uniform(const Words& w, u64* r) {
    r[0] = ((u64)w.at[0] << 32) | w.at[1], r[1] = ((u64)w.at[2] << 32) | w.at[3];
  }
};

FN float quick_log(float x) { return QUICK(log)(x); }
FN double quick_log(double x) { return log(x); }
FN float quick_log1p(float x) { return QUICK(log)(1 + x); }
FN double quick_log1p(double x) { return log1p(x); }
FN float quick_exp(float x) { return QUICK(exp)(x); }
FN double quick_exp(double x) { return exp(x); }
FN float quick_tan(float x) { return QUICK(tan)(x); }
FN double quick_tan(double x) { return tan(x); }
template <class T> FN T exponential(T x, T rate, T epsilon) {
  const T log = x >= 1 - epsilon / 2 ? -epsilon / 2 : quick_log(x);
  return -1 / rate * log;
}
template <class T> FN T cauchy(T x, T median, T sigma, T epsilon) {
  x = x > 1 - epsilon ? 1 - epsilon : x;
  x = x < epsilon ? epsilon : x;
  return median + sigma * quick_tan((T)3.141592653589793 * (x - (T)0.5));
}
