/* swish(x) = x·sigmoid(x) and its derivatives, written so that compilers vectorise them. */

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

static inline float sigmoid(float x)
{
    return reciprocal(1.0f + exponential(-x));
}

/* The first and the second derivative of swish, given s = sigmoid(x). */
static inline float swish_slope(float x, float s)
{
    return s + x * s * (1.0f - s);
}

static inline float swish_curvature(float x, float s)
{
    return s * (1.0f - s) * (2.0f + x * (1.0f - 2.0f * s));
}
