/* 16 numbers at a time: swish(x) = x·sigmoid(x), its derivatives, sums, and parts of vectors.

   Processors that can leave lanes out load and store a part of a vector at once; otherwise what
   is written number by number is slow to read as a vector. */

#define LANES 16
typedef float vector __attribute__((vector_size(4 * LANES), may_alias));

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include <immintrin.h>

/* 1 / (1 + e^-x) to some units in the last place. e^-x = 2^y = 2^n·2^f, where n is y rounded down
   and 2^f a polynomial; the processor's guess of a reciprocal is made exact by one step of
   Newton's. */
static inline vector sigmoid(vector x)
{
    __m512 y = _mm512_min_ps((__m512)x * -1.44269504f, _mm512_set1_ps(126.0f));
    __m512 f = _mm512_reduce_ps(y, _MM_FROUND_TO_NEG_INF);
    __m512 e = 0.99999994f + f * (0.69315308f + f * (0.24015361f + f * (0.055826318f
             + f * (0.0089893406f + f * 0.0018775766f))));
    __m512 d = 1.0f + _mm512_scalef_ps(e, y);
    __m512 guess = _mm512_rcp14_ps(d);
    return (vector)(guess + guess * (1.0f - d * guess));
}

static inline float sum_of_lanes(vector x)
{
    return _mm512_reduce_add_ps((__m512)x);
}

#define FIRST(count) ((__mmask16)((count) < LANES ? (1u << (count)) - 1 : 0xFFFF))

static inline vector load_some(const float *from, long count)
{
    return (vector)_mm512_maskz_loadu_ps(FIRST(count), from);
}

static inline void store_some(vector from, float *to, int count)
{
    _mm512_mask_storeu_ps(to, FIRST(count), (__m512)from);
}

static inline vector with_lane(vector v, int lane, const float *from)
{
    return (vector)_mm512_mask_broadcastss_ps((__m512)v, 1u << lane, _mm_load_ss(from));
}

#else

static inline float sum_of_lanes(vector x)
{
    float sum = 0;
    for (int l = 0; l < LANES; l++) sum += x[l];
    return sum;
}

static inline vector load_some(const float *from, long count)
{
    vector v = {0};
    __builtin_memcpy(&v, from, (count < LANES ? count : LANES) * sizeof(float));
    return v;
}

static inline void store_some(vector from, float *to, int count)
{
    __builtin_memcpy(to, &from, count * sizeof(float));
}

static inline vector with_lane(vector v, int lane, const float *from)
{
    v[lane] = *from;
    return v;
}

/* e^x to about one unit in the last place: 2^n·e^r with |r| <= ln(2)/2, e^r by its series. */
static inline float exponential(float x)
{
    x = x > -87.0f ? x : -87.0f;
    x = x < 87.0f ? x : 87.0f;
    float n = __builtin_rintf(x * 1.44269504f);
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float e = 1.0f + r * (1.0f + r * (0.5f + r * (1.66666667e-1f + r * (4.16666667e-2f
            + r * (8.33333333e-3f + r * (1.38888889e-3f + r * 1.98412698e-4f))))));
    union { int bits; float value; } scale = { .bits = ((int)n + 127) << 23 };
    return e * scale.value;
}

/* 1/x to about one unit in the last place, for x > 0 that is not tiny or huge: a guess from the
   bits, good to a twentieth, and two steps that each cube its error. Processors divide whole vectors
   several times slower. */
static inline float reciprocal(float x)
{
    union { float value; int bits; } guess = { .value = x };
    guess.bits = 0x7EF311C7 - guess.bits;
    float r = guess.value, error = 1.0f - x * r;
    r += r * (error + error * error);
    error = 1.0f - x * r;
    return r + r * (error + error * error);
}

static inline vector sigmoid(vector x)
{
    vector s;
    for (int l = 0; l < LANES; l++) s[l] = reciprocal(1.0f + exponential(-x[l]));
    return s;
}

#endif

/* The first and the second derivative of swish, given s = sigmoid(x). */
static inline vector swish_slope(vector x, vector s)
{
    return s + x * s * (1.0f - s);
}

static inline vector swish_curvature(vector x, vector s)
{
    return s * (1.0f - s) * (2.0f + x * (1.0f - 2.0f * s));
}
