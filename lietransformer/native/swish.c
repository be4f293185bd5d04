/* swish, elementwise: its value, its gradient or tangent, and the gradient of its tangent. */

#include "swish.h"

#define PART 8192

#define EACH_ELEMENT(statements)                                             \
    _Pragma("omp parallel for schedule(static) num_threads(threads)")        \
    for (long first = 0; first < count; first += PART) {                     \
        long last = first + PART < count ? first + PART : count;             \
        for (long i = first; i < last; i++) { statements }                   \
    }

void value(long count, long threads, const float *restrict x, float *restrict y)
{
    EACH_ELEMENT(y[i] = x[i] * sigmoid(x[i]);)
}

/* e = swish'(x)·d */
void slope(long count, long threads, const float *restrict x, const float *restrict d,
           float *restrict e)
{
    EACH_ELEMENT(e[i] = swish_slope(x[i], sigmoid(x[i])) * d[i];)
}

/* a = swish'(x)·b + swish''(x)·t·g */
void second(long count, long threads, const float *restrict x, const float *restrict t,
            const float *restrict g, const float *restrict b, float *restrict a)
{
    EACH_ELEMENT(
        float s = sigmoid(x[i]);
        a[i] = swish_slope(x[i], s) * b[i] + swish_curvature(x[i], s) * t[i] * g[i];
    )
}
