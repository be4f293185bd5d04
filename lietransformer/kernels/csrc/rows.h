/* Elementwise operations on arrays of numbers, whose count is a multiple of LANES. */

#define EACH_VECTOR for (long k = 0; k < count / LANES; k++)

static void activate(long count, const void *x, void *y)
{
    const vector *from = x;
    vector *to = y;
    EACH_VECTOR to[k] = from[k] * sigmoid(from[k]);
}

static inline void add_activated(long count, const void *x, void *y)
{
    const vector *from = x;
    vector *to = y;
    EACH_VECTOR to[k] += from[k] * sigmoid(from[k]);
}

/* e = swish'(x)·d */
static void times_slope(long count, const void *x, const void *d, void *e)
{
    const vector *from = x, *factor = d;
    vector *to = e;
    EACH_VECTOR to[k] = swish_slope(from[k], sigmoid(from[k])) * factor[k];
}

static void add_times_slope(long count, const void *x, const void *d, void *e)
{
    const vector *from = x, *factor = d;
    vector *to = e;
    EACH_VECTOR to[k] += swish_slope(from[k], sigmoid(from[k])) * factor[k];
}

/* a = swish'(x)·b + swish''(x)·t·g, the gradient of the tangent by x, and u = swish'(x)·g */
static void second_of_swish(long count, const void *x, const void *t, const void *g,
                            const void *b, void *a, void *u)
{
    const vector *from = x, *tangents = t, *gradients = g, *seconds = b;
    vector *to_a = a, *to_u = u;
    EACH_VECTOR {
        vector s = sigmoid(from[k]), slope = swish_slope(from[k], s), g_k = gradients[k];
        to_a[k] = slope * seconds[k] + swish_curvature(from[k], s) * tangents[k] * g_k;
        to_u[k] = slope * g_k;
    }
}

/* h = swish(x) and dh = swish'(x)·t */
static void activate_with_tangent(long count, const void *x, const void *t, void *h, void *dh)
{
    const vector *from = x, *tangents = t;
    vector *to_h = h, *to_dh = dh;
    EACH_VECTOR {
        vector s = sigmoid(from[k]);
        to_h[k] = from[k] * s;
        to_dh[k] = swish_slope(from[k], s) * tangents[k];
    }
}

/* y += x */
static void add(long count, const void *x, void *y)
{
    const vector *from = x;
    vector *to = y;
    EACH_VECTOR to[k] += from[k];
}

/* sum += each row of x */
static void add_rows_up(long rows, long length, const void *x, float *sum)
{
    const float *from = x;
    for (long r = 0; r < rows; r++)
        for (long i = 0; i < length; i++) sum[i] += from[r * length + i];
}
