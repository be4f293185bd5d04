/* A perceptron of three layers with swish after each, of a column in each lane of a vector.

   IN, HIDDEN and OUT are given by the compiler's command line, so that all loops over widths are
   unrolled. The parameters of a head follow each other as in `struct head`. */

#include "lanes.h"

struct head {
    float w1[IN][HIDDEN], b1[HIDDEN];
    float w2[HIDDEN][HIDDEN], b2[HIDDEN];
    float w3[HIDDEN][OUT], b3[OUT];
};

/* Sums over columns are kept apart by lane until the end: one vector operation a term. */
struct sums {
    vector w1[IN][HIDDEN], b1[HIDDEN];
    vector w2[HIDDEN][HIDDEN], b2[HIDDEN];
    vector w3[HIDDEN][OUT], b3[OUT];
};

/* What a block of columns, its tangent or a gradient is in all layers: before swish, z, and
   after, h. A block is one column for each lane, so that all of it stays in the nearest cache. */
struct block {
    vector x[IN], z1[HIDDEN], h1[HIDDEN], z2[HIDDEN], h2[HIDDEN], z3[OUT], h3[OUT];
};

/* The first and the second derivative of swish at z. */
struct derivatives {
    vector slope1[HIDDEN], slope2[HIDDEN], slope3[OUT];
    vector curvature1[HIDDEN], curvature2[HIDDEN], curvature3[OUT];
};

#define UNROLLED _Pragma("GCC unroll 32")
#define EACH(rows) for (int o = 0; o < rows; o++)

/* y[o] = bias[o] + sum_i weight[i][o]·x[i], all outputs in registers at once */
#define LAYER(inputs, outputs, weight, bias, x, y)                                      \
    do {                                                                                \
        vector sum[outputs];                                                            \
        UNROLLED EACH(outputs) sum[o] = bias - (vector){0};                             \
        for (int i = 0; i < inputs; i++)                                                \
            UNROLLED EACH(outputs) sum[o] += weight[i][o] * x[i];                       \
        UNROLLED EACH(outputs) y[o] = sum[o];                                           \
    } while (0)

/* e[i] = sum_o weight[i][o]·d[o] */
#define TRANSPOSED(inputs, outputs, weight, d, e)                                       \
    do {                                                                                \
        vector sum[inputs];                                                             \
        UNROLLED for (int i = 0; i < inputs; i++) sum[i] = (vector){0};                 \
        EACH(outputs)                                                                   \
            UNROLLED for (int i = 0; i < inputs; i++) sum[i] += weight[i][o] * d[o];    \
        UNROLLED for (int i = 0; i < inputs; i++) e[i] = sum[i];                        \
    } while (0)

/* weight[i][o] += x[i]·d[o] */
#define ADD_PRODUCTS(inputs, outputs, x, d, weight)                                     \
    for (int i = 0; i < inputs; i++)                                                    \
        UNROLLED EACH(outputs) weight[i][o] += x[i] * d[o];

/* weight[i][o] += x[i]·d[o] + y[i]·e[o] */
#define ADD_TWO_PRODUCTS(inputs, outputs, x, d, y, e, weight)                           \
    for (int i = 0; i < inputs; i++)                                                    \
        UNROLLED EACH(outputs) weight[i][o] += x[i] * d[o] + y[i] * e[o];

#define ADD_ROWS(outputs, d, bias) EACH(outputs) bias[o] += d[o];

static inline void load(const float *from, long columns, long at, int count, int rows, vector *to)
{
    for (int i = 0; i < rows; i++) {
        to[i] = (vector){0};
        if (count == LANES)
            __builtin_memcpy(&to[i], from + i * columns + at, sizeof(vector));
        else
            for (int c = 0; c < count; c++) to[i][c] = from[i * columns + at + c];
    }
}

static inline void store(vector *from, long columns, long at, int count, int rows, float *to)
{
    for (int i = 0; i < rows; i++)
        if (count == LANES)
            __builtin_memcpy(to + i * columns + at, &from[i], sizeof(vector));
        else
            for (int c = 0; c < count; c++) to[i * columns + at + c] = from[i][c];
}

static inline void add(vector *from, long columns, long at, int count, int rows, float *to)
{
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < count; c++) to[i * columns + at + c] += from[i][c];
}

static inline void activate(int rows, vector *z, vector *h)
{
    EACH(rows) h[o] = z[o] * sigmoid(z[o]);
}

static inline void activate_with_derivatives(int rows, vector *z, vector *h, vector *slope,
                                             vector *curvature)
{
    EACH(rows) {
        vector s = sigmoid(z[o]);
        h[o] = z[o] * s;
        slope[o] = swish_slope(z[o], s);
        curvature[o] = swish_curvature(z[o], s);
    }
}

static inline void multiply(int rows, vector *x, vector *y, vector *out)
{
    EACH(rows) out[o] = x[o] * y[o];
}

static inline void values(const struct head *p, struct block *f)
{
    LAYER(IN, HIDDEN, p->w1, p->b1[o], f->x, f->z1);
    activate(HIDDEN, f->z1, f->h1);
    LAYER(HIDDEN, HIDDEN, p->w2, p->b2[o], f->h1, f->z2);
    activate(HIDDEN, f->z2, f->h2);
    LAYER(HIDDEN, OUT, p->w3, p->b3[o], f->h2, f->z3);
    activate(OUT, f->z3, f->h3);
}

static inline void values_and_derivatives(const struct head *p, struct block *f,
                                          struct derivatives *s)
{
    LAYER(IN, HIDDEN, p->w1, p->b1[o], f->x, f->z1);
    activate_with_derivatives(HIDDEN, f->z1, f->h1, s->slope1, s->curvature1);
    LAYER(HIDDEN, HIDDEN, p->w2, p->b2[o], f->h1, f->z2);
    activate_with_derivatives(HIDDEN, f->z2, f->h2, s->slope2, s->curvature2);
    LAYER(HIDDEN, OUT, p->w3, p->b3[o], f->h2, f->z3);
    activate_with_derivatives(OUT, f->z3, f->h3, s->slope3, s->curvature3);
}

/* Gradients, from that by h3 in d->h3 */
static inline void gradients(const struct head *p, struct derivatives *s, struct block *d)
{
    multiply(OUT, s->slope3, d->h3, d->z3);
    TRANSPOSED(HIDDEN, OUT, p->w3, d->z3, d->h2);
    multiply(HIDDEN, s->slope2, d->h2, d->z2);
    TRANSPOSED(HIDDEN, HIDDEN, p->w2, d->z2, d->h1);
    multiply(HIDDEN, s->slope1, d->h1, d->z1);
    TRANSPOSED(IN, HIDDEN, p->w1, d->z1, d->x);
}

/* Tangents, from that of x in t->x */
static inline void tangents(const struct head *p, struct derivatives *s, struct block *t)
{
    LAYER(IN, HIDDEN, p->w1, 0, t->x, t->z1);
    multiply(HIDDEN, s->slope1, t->z1, t->h1);
    LAYER(HIDDEN, HIDDEN, p->w2, 0, t->h1, t->z2);
    multiply(HIDDEN, s->slope2, t->z2, t->h2);
    LAYER(HIDDEN, OUT, p->w3, 0, t->h2, t->z3);
    multiply(OUT, s->slope3, t->z3, t->h3);
}

/* a = slope·e + curvature·t·g */
static inline void bend(int rows, vector *slope, vector *e, vector *curvature, vector *t,
                        vector *g, vector *a)
{
    EACH(rows) a[o] = slope[o] * e[o] + curvature[o] * t[o] * g[o];
}

/* Gradients of a3·h3 + d3·t3, from a3 in a->h3; the tangents are t, gradients by them d. */
static inline void second_gradients(const struct head *p, struct derivatives *s,
                                    struct block *t, struct block *d, struct block *a)
{
    bend(OUT, s->slope3, a->h3, s->curvature3, t->z3, d->h3, a->z3);
    TRANSPOSED(HIDDEN, OUT, p->w3, a->z3, a->h2);
    bend(HIDDEN, s->slope2, a->h2, s->curvature2, t->z2, d->h2, a->z2);
    TRANSPOSED(HIDDEN, HIDDEN, p->w2, a->z2, a->h1);
    bend(HIDDEN, s->slope1, a->h1, s->curvature1, t->z1, d->h1, a->z1);
    TRANSPOSED(IN, HIDDEN, p->w1, a->z1, a->x);
}

static inline void add_parameter_gradients(struct block *f, struct block *d, struct sums *s)
{
    ADD_PRODUCTS(IN, HIDDEN, f->x, d->z1, s->w1)
    ADD_PRODUCTS(HIDDEN, HIDDEN, f->h1, d->z2, s->w2)
    ADD_PRODUCTS(HIDDEN, OUT, f->h2, d->z3, s->w3)
    ADD_ROWS(HIDDEN, d->z1, s->b1)
    ADD_ROWS(HIDDEN, d->z2, s->b2)
    ADD_ROWS(OUT, d->z3, s->b3)
}

static inline void add_second_parameter_gradients(struct block *f, struct block *a,
                                                  struct block *t, struct block *d,
                                                  struct sums *s)
{
    ADD_TWO_PRODUCTS(IN, HIDDEN, f->x, a->z1, t->x, d->z1, s->w1)
    ADD_TWO_PRODUCTS(HIDDEN, HIDDEN, f->h1, a->z2, t->h1, d->z2, s->w2)
    ADD_TWO_PRODUCTS(HIDDEN, OUT, f->h2, a->z3, t->h2, d->z3, s->w3)
    ADD_ROWS(HIDDEN, a->z1, s->b1)
    ADD_ROWS(HIDDEN, a->z2, s->b2)
    ADD_ROWS(OUT, a->z3, s->b3)
}

static void total(const struct sums *s, struct head *to)
{
    const vector *terms = (const vector *)s;
    float *sum = (float *)to;
    for (unsigned long k = 0; k < sizeof(struct head) / sizeof(float); k++)
        sum[k] = sum_of_lanes(terms[k]);
}
