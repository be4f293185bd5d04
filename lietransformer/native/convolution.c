/* A network of LieConv layers V and its derivatives, as `transformer.c` for a LieTransformer.

   A block: x += widen(swish(convolve(swish(narrow(swish(x)))))), where convolve sums
   kernel(i, j)·h(j) over all elements j, KERNEL times with a kernel of its own, and maps the
   results to one row. V is the mean over elements of a linear map of swish(x).

   The sizes are given by the compiler's command line: POINTS, the elements of an example; LAYERS;
   KERNEL; NARROW, numbers of a row within a block, filled up with zeros to whole machine vectors.
   Rows between blocks are WIDE. The features of elements at the first layer, x0, and h0, what they
   are before the first sum, do not depend on positions: they are given. */

#include <string.h>

#define WIDE (4 * NARROW)

#include "lanes.h"
#include "rows.h"
#include "chunks.h"
#define LEAST_COLUMNS NARROW
#include "product.h"

typedef float narrow[NARROW];
typedef float wide[WIDE];
typedef narrow outer[KERNEL]; /* the sums of an element, one for each kernel */
typedef float kernels[POINTS][KERNEL][POINTS];

struct layer {
    wide narrow_weight[NARROW];
    narrow narrow_bias;
    outer weight[NARROW];
    narrow bias;
    narrow widen_weight[WIDE];
    wide widen_bias;
};

struct parameters {
    struct layer layers[LAYERS];
    wide last; /* divided by POINTS */
};

/* The weights again, for the products from inputs to outputs. */
struct transposes {
    struct {
        narrow narrow_weight[WIDE];
        narrow weight[KERNEL * NARROW];
        wide widen_weight[NARROW];
    } layers[LAYERS];
};

/* What the gradient of the tangent needs of the value and the gradient, of one chunk. */
struct stored {
    struct {
        wide *x;
        narrow *narrowed, *convolved;               /* before swish */
        wide *by_block, *by_activated;              /* gradients */
        narrow *by_hidden, *by_convolved_activated;
        outer *by_outer;
        kernels *kernels;
    } layers[LAYERS];
    wide *x;
    narrow *h0;
};

/* What one chunk needs for a moment: tangents, and the rest. */
struct scratch {
    struct {
        wide *x;
        narrow *narrowed, *convolved;
        kernels *kernels;
    } layers[LAYERS];
    wide *x, *a, *u, *b;
    narrow *h, *dh, *narrow_a, *narrow_u, *narrow_b;
    outer *outer, *outer_tangent;
};

static long lay_out_stored(float *base, long examples, struct stored *s)
{
    long at = 0, rows = examples * POINTS;
    for (int l = 0; l < LAYERS; l++) {
        TAKE(s->layers[l].x, rows);
        TAKE(s->layers[l].narrowed, rows);
        TAKE(s->layers[l].kernels, examples);
        TAKE(s->layers[l].convolved, rows);
        TAKE(s->layers[l].by_block, rows);
        TAKE(s->layers[l].by_convolved_activated, rows);
        TAKE(s->layers[l].by_outer, rows);
        TAKE(s->layers[l].by_hidden, rows);
        TAKE(s->layers[l].by_activated, rows);
    }
    TAKE(s->x, rows);
    TAKE(s->h0, rows);
    return at;
}

static long lay_out_scratch(float *base, long examples, struct scratch *s)
{
    long at = 0, rows = examples * POINTS;
    for (int l = 0; l < LAYERS; l++) {
        TAKE(s->layers[l].x, rows);
        TAKE(s->layers[l].narrowed, rows);
        TAKE(s->layers[l].kernels, examples);
        TAKE(s->layers[l].convolved, rows);
    }
    TAKE(s->x, rows);
    TAKE(s->a, rows);
    TAKE(s->u, rows);
    TAKE(s->b, rows);
    TAKE(s->h, rows);
    TAKE(s->dh, rows);
    TAKE(s->narrow_a, rows);
    TAKE(s->narrow_u, rows);
    TAKE(s->narrow_b, rows);
    TAKE(s->outer, rows);
    TAKE(s->outer_tangent, rows);
    return at;
}

/* How many numbers they are. */
long stored_size(long examples)
{
    struct stored s;
    return lay_out_stored(0, examples, &s);
}

long scratch_size(long examples)
{
    struct scratch s;
    return lay_out_scratch(0, examples, &s);
}

/* ---- sums over the elements of an example */

#define OF_KERNEL(array) ((array) + k * where.stride + e * where.columns)

static void load_kernels(long examples, struct locations where, const float *from, kernels *to)
{
    for (long e = 0; e < examples; e++)
        for (int k = 0; k < KERNEL; k++)
            for (int i = 0; i < POINTS; i++)
                for (int j = 0; j < POINTS; j++)
                    to[e][i][k][j] = OF_KERNEL(from)[where.column[i * POINTS + j]];
}

/* o[i][k] = sum_j kernel[i][k][j]·h[j], or added to what is there */
static void sum_elements(long examples, const kernels *kernel, const narrow *h, int is_added,
                         outer *o)
{
    for (long e = 0; e < examples; e++) {
        struct matrix a = {(const float *)kernel[e], POINTS, 1};
        float *to = (float *)(o + e * POINTS);
        product(POINTS * KERNEL, POINTS, NARROW, a, h[e * POINTS], NARROW, is_added ? to : 0,
                NARROW, to, NARROW);
    }
}

/* h[j] = sum_ik kernel[i][k][j]·o[i][k], or added to what is there */
static void spread_sums(long examples, const kernels *kernel, const outer *o, int is_added,
                        narrow *h)
{
    for (long e = 0; e < examples; e++) {
        struct matrix a = {(const float *)kernel[e], 1, POINTS};
        float *to = h[e * POINTS];
        product(POINTS, POINTS * KERNEL, NARROW, a, o[e * POINTS][0], NARROW,
                is_added ? to : 0, NARROW, to, NARROW);
    }
}

/* The gradient by kernels of o·(their sums of h) and, unless p is null, of p·(their sums of t);
   those of all pairs of a column are added up. */
static void kernel_gradient(long examples, struct locations where, const outer *o, const narrow *h,
                            const outer *p, const narrow *t, float *by_location)
{
    for (long e = 0; e < examples; e++)
        for (int k = 0; k < KERNEL; k++) {
            float *to = OF_KERNEL(by_location);
            for (long c = 0; c < where.columns; c++) to[c] = 0;
            for (int i = 0; i < POINTS; i++) {
                const vector *o_i = (const vector *)o[e * POINTS + i][k];
                const vector *p_i = p ? (const vector *)p[e * POINTS + i][k] : 0;
                for (int j = 0; j < POINTS; j++) {
                    const vector *h_j = (const vector *)h[e * POINTS + j];
                    const vector *t_j = t ? (const vector *)t[e * POINTS + j] : 0;
                    vector sum = {0};
                    for (int v = 0; v < NARROW / LANES; v++) sum += o_i[v] * h_j[v];
                    if (p)
                        for (int v = 0; v < NARROW / LANES; v++) sum += p_i[v] * t_j[v];
                    to[where.column[i * POINTS + j]] += sum_of_lanes(sum);
                }
            }
        }
}

/* ---- the passes through all layers, of one chunk */

#define OF_LAYER(array) ((array) + l * KERNEL * where.stride)

static void value(long examples, struct locations where, const struct parameters *p,
                  const struct transposes *w, const wide *x0, const narrow *h0,
                  const float *location, struct stored *s, struct scratch *work)
{
    long rows = examples * POINTS;
    wide *x = work->x;
    memcpy(x, x0, rows * sizeof(wide));
    memcpy(s->h0, h0, rows * sizeof(narrow));
    for (int l = 0; l < LAYERS; l++) {
        const struct layer *layer = &p->layers[l];
        const narrow *h = h0;
        if (l) {
            memcpy(s->layers[l].x, x, rows * sizeof(wide));
            activate(rows * WIDE, x, work->a);
            map(rows, WIDE, NARROW, work->a, w->layers[l].narrow_weight, layer->narrow_bias,
                s->layers[l].narrowed);
            activate(rows * NARROW, s->layers[l].narrowed, work->h);
            h = work->h;
        }
        load_kernels(examples, where, OF_LAYER(location), s->layers[l].kernels);
        sum_elements(examples, s->layers[l].kernels, h, 0, work->outer);
        map(rows, KERNEL * NARROW, NARROW, work->outer, w->layers[l].weight, layer->bias,
            s->layers[l].convolved);
        activate(rows * NARROW, s->layers[l].convolved, work->h);
        for (long r = 0; r < rows; r++)
            for (int i = 0; i < WIDE; i++) x[r][i] += layer->widen_bias[i];
        add_map(rows, NARROW, WIDE, work->h, w->layers[l].widen_weight, x);
    }
    memcpy(s->x, x, rows * sizeof(wide));
}

static void gradient(long examples, struct locations where, const struct parameters *p,
                     struct stored *s, struct scratch *work, float *by_location)
{
    long rows = examples * POINTS;
    wide *g = work->b;
    for (long r = 0; r < rows; r++) memcpy(work->a[r], p->last, sizeof(wide));
    times_slope(rows * WIDE, s->x, work->a, g);
    for (int l = LAYERS - 1; l >= 0; l--) {
        const struct layer *layer = &p->layers[l];
        const narrow *h = s->h0;
        memcpy(s->layers[l].by_block, g, rows * sizeof(wide));
        map(rows, WIDE, NARROW, g, layer->widen_weight, 0, s->layers[l].by_convolved_activated);
        times_slope(rows * NARROW, s->layers[l].convolved, s->layers[l].by_convolved_activated,
                    work->narrow_u);
        map(rows, NARROW, KERNEL * NARROW, work->narrow_u, layer->weight, 0,
            s->layers[l].by_outer);
        if (l) {
            activate(rows * NARROW, s->layers[l].narrowed, work->h);
            h = work->h;
        }
        kernel_gradient(examples, where, s->layers[l].by_outer, h, 0, 0, OF_LAYER(by_location));
        if (!l) break; /* what the first layer is given does not depend on positions */
        spread_sums(examples, s->layers[l].kernels, s->layers[l].by_outer, 0,
                    s->layers[l].by_hidden);
        times_slope(rows * NARROW, s->layers[l].narrowed, s->layers[l].by_hidden,
                    work->narrow_u);
        map(rows, NARROW, WIDE, work->narrow_u, layer->narrow_weight, 0,
            s->layers[l].by_activated);
        add_times_slope(rows * WIDE, s->layers[l].x, s->layers[l].by_activated, g);
    }
}

/* The sums of an element and their tangent. Computing them again is faster than keeping them. */
static void sums_and_tangents(long examples, int l, const struct stored *s, struct scratch *t)
{
    long rows = examples * POINTS;
    if (l) {
        activate_with_tangent(rows * NARROW, s->layers[l].narrowed, t->layers[l].narrowed, t->h,
                              t->dh);
    } else {
        memcpy(t->h, s->h0, rows * sizeof(narrow));
        memset(t->dh, 0, rows * sizeof(narrow));
    }
    sum_elements(examples, s->layers[l].kernels, t->h, 0, t->outer);
    sum_elements(examples, t->layers[l].kernels, t->h, 0, t->outer_tangent);
    if (l) sum_elements(examples, s->layers[l].kernels, t->dh, 1, t->outer_tangent);
}

static void tangent(long examples, struct locations where, const struct transposes *w,
                    const struct stored *s, const float *t_location, struct scratch *t)
{
    long rows = examples * POINTS;
    memset(t->x, 0, rows * sizeof(wide));
    for (int l = 0; l < LAYERS; l++) {
        if (l) {
            memcpy(t->layers[l].x, t->x, rows * sizeof(wide));
            times_slope(rows * WIDE, s->layers[l].x, t->x, t->a);
            map(rows, WIDE, NARROW, t->a, w->layers[l].narrow_weight, 0, t->layers[l].narrowed);
        }
        load_kernels(examples, where, OF_LAYER(t_location), t->layers[l].kernels);
        sums_and_tangents(examples, l, s, t);
        map(rows, KERNEL * NARROW, NARROW, t->outer_tangent, w->layers[l].weight, 0,
            t->layers[l].convolved);
        times_slope(rows * NARROW, s->layers[l].convolved, t->layers[l].convolved, t->h);
        add_map(rows, NARROW, WIDE, t->h, w->layers[l].widen_weight, t->x);
    }
}

/* The gradient of the tangent, by what the first layer is given, by locations, and added to
   `sums` that by the parameters. */
static void second(long examples, struct locations where, const struct parameters *p,
                   const struct stored *s, struct scratch *t, float *by_location, struct parameters *sums,
                   wide *by_x0, narrow *by_h0)
{
    long rows = examples * POINTS;
    wide *a = t->a, *u = t->u, *b = t->b;

    /* The tangent of V is last·swish'(x)·dx, so it does not depend on swish(x) itself. */
    times_slope(rows * WIDE, s->x, t->x, a);
    add_rows_up(rows, WIDE, a, sums->last);
    for (long r = 0; r < rows; r++) memcpy(u[r], p->last, sizeof(wide));
    memset(a, 0, rows * sizeof(wide));
    second_of_swish(rows * WIDE, s->x, t->x, u, a, b, u);

    for (int l = LAYERS - 1; l >= 0; l--) {
        const struct layer *layer = &p->layers[l];
        struct layer *sum = &sums->layers[l];
        activate_with_tangent(rows * NARROW, s->layers[l].convolved, t->layers[l].convolved,
                              t->h, t->dh);
        add_weight_gradient(rows, WIDE, NARROW, b, t->h, sum->widen_weight);
        add_weight_gradient(rows, WIDE, NARROW, s->layers[l].by_block, t->dh, sum->widen_weight);
        add_rows_up(rows, WIDE, b, sum->widen_bias);
        map(rows, WIDE, NARROW, b, layer->widen_weight, 0, t->narrow_b);
        second_of_swish(rows * NARROW, s->layers[l].convolved, t->layers[l].convolved,
                        s->layers[l].by_convolved_activated, t->narrow_b, t->narrow_a,
                        t->narrow_u);
        sums_and_tangents(examples, l, s, t);
        add_weight_gradient(rows, NARROW, KERNEL * NARROW, t->narrow_a, t->outer, sum->weight);
        add_weight_gradient(rows, NARROW, KERNEL * NARROW, t->narrow_u, t->outer_tangent,
                            sum->weight);
        add_rows_up(rows, NARROW, t->narrow_a, sum->bias);
        map(rows, NARROW, KERNEL * NARROW, t->narrow_a, layer->weight, 0, t->outer);
        kernel_gradient(examples, where, t->outer, t->h, l ? s->layers[l].by_outer : 0,
                        l ? t->dh : 0, OF_LAYER(by_location));
        narrow *by_h = l ? t->narrow_b : by_h0;
        spread_sums(examples, s->layers[l].kernels, t->outer, 0, by_h);
        spread_sums(examples, t->layers[l].kernels, s->layers[l].by_outer, 1, by_h);
        if (!l) break;
        second_of_swish(rows * NARROW, s->layers[l].narrowed, t->layers[l].narrowed,
                        s->layers[l].by_hidden, t->narrow_b, t->narrow_a, t->narrow_u);
        activate_with_tangent(rows * WIDE, s->layers[l].x, t->layers[l].x, a, u);
        add_weight_gradient(rows, NARROW, WIDE, t->narrow_a, a, sum->narrow_weight);
        add_weight_gradient(rows, NARROW, WIDE, t->narrow_u, u, sum->narrow_weight);
        add_rows_up(rows, NARROW, t->narrow_a, sum->narrow_bias);
        map(rows, NARROW, WIDE, t->narrow_a, layer->narrow_weight, 0, a);
        second_of_swish(rows * WIDE, s->layers[l].x, t->layers[l].x, s->layers[l].by_activated,
                        a, a, u);
        for (long r = 0; r < rows; r++)
            for (int i = 0; i < WIDE; i++) b[r][i] += a[r][i];
    }
    memcpy(by_x0, b, rows * sizeof(wide));
}

/* ---- all examples, chunk by chunk */

/* The gradient of V by the kernels of locations, (LAYERS, KERNEL, batch, columns).

   stored: stored_size(chunk) for each chunk, or, if it need not be kept, for each thread;
   scratch: scratch_size(chunk) for each thread. */
void first_order(long batch, long chunk, long threads, long columns, const long *column,
                 const struct parameters *p, const struct transposes *w, const wide *x0,
                 const narrow *h0, const float *location, long keep, float *stored,
                 float *scratch, float *by_location)
{
    EACH_CHUNK {
        struct locations where = WHERE;
        struct stored s;
        struct scratch work;
        long size = stored_size(chunk);
        lay_out_stored(keep ? THIS_CHUNKS(stored, size) : THIS_THREADS(stored, size), chunk, &s);
        lay_out_scratch(THIS_THREADS(scratch, scratch_size(chunk)), chunk, &work);
        value(EXAMPLES, where, p, w, x0 + first * POINTS, h0 + first * POINTS,
              location + first * columns, &s, &work);
        gradient(EXAMPLES, where, p, &s, &work, by_location + first * columns);
    }
}

/* The gradient of the tangent of V, for the tangent of the kernels of locations.

   sums: of each chunk, added to. */
void second_order(long batch, long chunk, long threads, long columns, const long *column,
                  const struct parameters *p, const struct transposes *w, float *stored,
                  float *scratch, const float *t_location, float *by_location,
                  struct parameters *sums, wide *by_x0, narrow *by_h0)
{
    EACH_CHUNK {
        struct locations where = WHERE;
        struct stored s;
        struct scratch work;
        lay_out_stored(THIS_CHUNKS(stored, stored_size(chunk)), chunk, &s);
        lay_out_scratch(THIS_THREADS(scratch, scratch_size(chunk)), chunk, &work);
        tangent(EXAMPLES, where, w, &s, t_location + first * columns, &work);
        second(EXAMPLES, where, p, &s, &work, by_location + first * columns,
               THIS_CHUNKS(sums, 1), by_x0 + first * POINTS, by_h0 + first * POINTS);
    }
}
