/* A network of LieConv layers V and its derivatives, as `transformer.c` for a LieTransformer.

   A block: x += widen(swish(convolve(swish(narrow(swish(x)))))), where convolve sums
   kernel(i, j)·h(j) over all elements j, KERNEL times with a kernel of its own, and maps the
   results to one row. V is the mean over elements of a linear map of swish(x).

   The sizes are given by the compiler's command line: POINTS, the elements of an example; LAYERS;
   KERNEL; NARROW, numbers of a row within a block, filled up with zeros to whole machine vectors.
   Rows between blocks are WIDE. The features of elements at the first layer do not depend on
   positions, and neither does what the first layer sums up: they are given. Of a layer, convolve
   maps the sums of h(j); of the first one, it is faster to map each h(j) once for all positions, by
   each kernel's part of the map, and to sum up the results.

   The sums of all kernels would not stay in the caches of a core: they are there for a GROUP of
   kernels at a time. */

#include <string.h>

#define WIDE (4 * NARROW)
#define GROUP 4
#define GROUPS (KERNEL / GROUP)
_Static_assert(KERNEL % GROUP == 0, "groups of kernels are of one size");

#include "lanes.h"
#include "rows.h"
#include "chunks.h"
#define LEAST_COLUMNS NARROW
#include "product.h"

typedef float narrow[NARROW];
typedef float wide[WIDE];
/* Of a group of kernels: the sums of an element, and the kernels of all pairs of an example. Of
   examples, first there are all those of the first group, then those of the second. */
typedef narrow outer[GROUP];
typedef float kernels[POINTS][GROUP][POINTS];
typedef wide features[POINTS];
typedef narrow prepared[KERNEL][POINTS];

struct layer {
    wide narrow_weight[NARROW];
    narrow narrow_bias;
    narrow weight[NARROW][KERNEL];
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
        wide *by_activated;                         /* gradients */
        narrow *by_hidden, *by_convolved_activated;
        outer *by_outer;
        kernels *kernels;
    } layers[LAYERS];
    wide *x;
};

/* What one chunk needs for a moment: tangents, and the rest. */
struct scratch {
    struct {
        wide *x;
        narrow *narrowed, *convolved;
        kernels *kernels;
    } layers[LAYERS];
    wide *x, *a, *u, *b, *by_block;
    narrow *h, *dh, *narrow_a, *narrow_u, *narrow_b;
    outer *outer, *outer_tangent;
};

static long lay_out_stored(float *base, long examples, struct stored *s)
{
    long at = 0, rows = examples * POINTS;
    for (int l = 0; l < LAYERS; l++) {
        TAKE(s->layers[l].x, rows);
        TAKE(s->layers[l].narrowed, rows);
        TAKE(s->layers[l].kernels, GROUPS * examples);
        TAKE(s->layers[l].convolved, rows);
        TAKE(s->layers[l].by_convolved_activated, rows);
        TAKE(s->layers[l].by_outer, GROUPS * rows);
        TAKE(s->layers[l].by_hidden, rows);
        TAKE(s->layers[l].by_activated, rows);
    }
    TAKE(s->x, rows);
    return at;
}

static long lay_out_scratch(float *base, long examples, struct scratch *s)
{
    long at = 0, rows = examples * POINTS;
    for (int l = 0; l < LAYERS; l++) {
        TAKE(s->layers[l].x, rows);
        TAKE(s->layers[l].narrowed, rows);
        TAKE(s->layers[l].kernels, GROUPS * examples);
        TAKE(s->layers[l].convolved, rows);
    }
    TAKE(s->x, rows);
    TAKE(s->a, rows);
    TAKE(s->u, rows);
    TAKE(s->b, rows);
    TAKE(s->by_block, rows);
    TAKE(s->h, rows);
    TAKE(s->dh, rows);
    TAKE(s->narrow_a, rows);
    TAKE(s->narrow_u, rows);
    TAKE(s->narrow_b, rows);
    TAKE(s->outer, rows);
    TAKE(s->outer_tangent, rows);
    return at;
}

/* ---- sums over the elements of an example */

#define EACH_GROUP for (int g = 0; g < GROUPS; g++)
/* Where the numbers of a group's locations begin, and those of one of its kernels. */
#define OF_GROUP(array) ((array) + g * GROUP * where.stride)
#define OF_KERNEL(array) ((array) + k * where.stride + e * where.columns)

static void load_kernels(long examples, struct locations where, const float *from, kernels *to)
{
    EACH_GROUP
        for (long e = 0; e < examples; e++)
            for (int k = 0; k < GROUP; k++)
                for (int i = 0; i < POINTS; i++)
                    for (int j = 0; j < POINTS; j++)
                        to[g * examples + e][i][k][j] =
                            OF_KERNEL(OF_GROUP(from))[where.column[i * POINTS + j]];
}

/* o[i][k] = sum_j kernel[i][k][j]·h[j], or added to what is there */
static void sum_elements(long examples, const kernels *kernel, const narrow *h, int is_added,
                         outer *o)
{
    for (long e = 0; e < examples; e++) {
        struct matrix a = {(const float *)kernel[e], POINTS, 1};
        float *to = (float *)(o + e * POINTS);
        product(POINTS * GROUP, POINTS, NARROW, a, h[e * POINTS], NARROW, is_added ? to : 0,
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
        product(POINTS, POINTS * GROUP, NARROW, a, o[e * POINTS][0], NARROW, is_added ? to : 0,
                NARROW, to, NARROW);
    }
}

/* The group's part of a layer's map applied to sums, and added to y; or to the bias, of the first
   group. */
static void map_sums(long rows, int g, const outer *o, const narrow *weight, const float *bias,
                     narrow *y)
{
    struct matrix a = {**o, GROUP * NARROW, 1};
    product(rows, GROUP * NARROW, NARROW, a, weight[g * GROUP * NARROW], NARROW, g ? *y : bias,
            g ? NARROW : 0, *y, NARROW);
}

/* The gradient by the group's sums, from that by what they are mapped to. */
static void map_back(long rows, int g, const narrow *by_y, const narrow (*weight)[KERNEL],
                     outer *by_o)
{
    struct matrix a = {*by_y, NARROW, 1};
    product(rows, NARROW, GROUP * NARROW, a, weight[0][g * GROUP], KERNEL * NARROW, 0, 0, **by_o,
            GROUP * NARROW);
}

/* The gradient of the group's part of the map: weight += by_y'o */
static void add_map_gradient(long rows, int g, const narrow *by_y, const outer *o,
                             narrow (*weight)[KERNEL])
{
    struct matrix a = {*by_y, 1, NARROW};
    float *to = weight[0][g * GROUP];
    product(NARROW, rows, GROUP * NARROW, a, **o, GROUP * NARROW, to, KERNEL * NARROW, to,
            KERNEL * NARROW);
}

/* The sums of the first layer, mapped: o[i] = bias + sum_jk kernel[i][k][j]·given[k][j], where null
   stands for a bias of zeros. */
static void sum_first(long examples, const kernels *kernel, const prepared *given,
                      const float *bias, narrow *o)
{
    EACH_GROUP
        for (long e = 0; e < examples; e++) {
            struct matrix a = {(const float *)kernel[g * examples + e], GROUP * POINTS, 1};
            float *to = o[e * POINTS];
            product(POINTS, GROUP * POINTS, NARROW, a, given[e][g * GROUP][0], NARROW,
                    g ? to : bias, g ? NARROW : 0, to, NARROW);
        }
}

/* by_given[k][j] += sum_i kernel[i][k][j]·o[i] */
static void spread_first(long examples, const kernels *kernel, const narrow *o,
                         prepared *by_given)
{
    EACH_GROUP
        for (long e = 0; e < examples; e++) {
            struct matrix a = {(const float *)kernel[g * examples + e], 1, GROUP * POINTS};
            float *to = by_given[e][g * GROUP][0];
            product(GROUP * POINTS, POINTS, NARROW, a, o[e * POINTS], NARROW, to, NARROW, to,
                    NARROW);
        }
}

/* Rows of the elements of an example, one for each kernel of a group or for all: row (i, k) of
   example e is at[e * example + i * element + k * kernel]. */
struct elements {
    const narrow *at;
    long example, element, kernel;
};
#define FOR_ALL_KERNELS(array) ((struct elements){(array), POINTS, 1, 0})
#define OUTER(array) ((struct elements){*(array), GROUP * POINTS, GROUP, 1})
#define PREPARED(array) ((struct elements){(array)[0][g * GROUP], KERNEL * POINTS, 1, POINTS})
#define ROW(elements, i) \
    ((const vector *)(elements).at[e * (elements).example + (i) * (elements).element \
                                   + k * (elements).kernel])

/* The gradient by a group's kernels, of pair (i, j) and kernel k: o(i, k)·h(j, k), and, unless they
   are null, p(i, k)·t(j, k) added to it; those of all pairs of a column are added up. */
static void kernel_gradient(long examples, struct locations where, struct elements o,
                            struct elements h, struct elements p, struct elements t,
                            float *by_location)
{
    for (long e = 0; e < examples; e++)
        for (int k = 0; k < GROUP; k++) {
            float *to = OF_KERNEL(by_location);
            for (long c = 0; c < where.columns; c++) to[c] = 0;
            for (int i = 0; i < POINTS; i++)
                for (int j = 0; j < POINTS; j++) {
                    vector sum = {0};
                    for (int v = 0; v < NARROW / LANES; v++) sum += ROW(o, i)[v] * ROW(h, j)[v];
                    if (p.at)
                        for (int v = 0; v < NARROW / LANES; v++)
                            sum += ROW(p, i)[v] * ROW(t, j)[v];
                    to[where.column[i * POINTS + j]] += sum_of_lanes(sum);
                }
        }
}

/* ---- the passes through all layers, of one chunk */

#define OF_LAYER(array) ((array) + l * KERNEL * where.stride)

static void value(long examples, struct locations where, const struct parameters *p,
                  const struct transposes *w, const features *x0, const prepared *given,
                  const float *location, struct stored *s, struct scratch *work)
{
    long rows = examples * POINTS;
    wide *x = work->x;
    memcpy(x, x0, rows * sizeof(wide));
    for (int l = 0; l < LAYERS; l++) {
        const struct layer *layer = &p->layers[l];
        load_kernels(examples, where, OF_LAYER(location), s->layers[l].kernels);
        if (l) {
            memcpy(s->layers[l].x, x, rows * sizeof(wide));
            activate(rows * WIDE, x, work->a);
            map(rows, WIDE, NARROW, work->a, w->layers[l].narrow_weight, layer->narrow_bias,
                s->layers[l].narrowed);
            activate(rows * NARROW, s->layers[l].narrowed, work->h);
            EACH_GROUP {
                sum_elements(examples, s->layers[l].kernels + g * examples, work->h, 0,
                             work->outer);
                map_sums(rows, g, work->outer, w->layers[l].weight, layer->bias,
                         s->layers[l].convolved);
            }
        } else {
            sum_first(examples, s->layers[l].kernels, given, layer->bias, s->layers[l].convolved);
        }
        activate(rows * NARROW, s->layers[l].convolved, work->h);
        for (long r = 0; r < rows; r++)
            for (int i = 0; i < WIDE; i++) x[r][i] += layer->widen_bias[i];
        add_map(rows, NARROW, WIDE, work->h, w->layers[l].widen_weight, x);
    }
    memcpy(s->x, x, rows * sizeof(wide));
}

static void gradient(long examples, struct locations where, const struct parameters *p,
                     const prepared *given, struct stored *s, struct scratch *work,
                     float *by_location)
{
    const struct elements none = {0};
    long rows = examples * POINTS;
    wide *g = work->b;
    for (long r = 0; r < rows; r++) memcpy(work->a[r], p->last, sizeof(wide));
    times_slope(rows * WIDE, s->x, work->a, g);
    for (int l = LAYERS - 1; l >= 0; l--) {
        const struct layer *layer = &p->layers[l];
        narrow *u = work->narrow_u;
        map(rows, WIDE, NARROW, g, layer->widen_weight, 0, s->layers[l].by_convolved_activated);
        times_slope(rows * NARROW, s->layers[l].convolved, s->layers[l].by_convolved_activated,
                    u);
        if (!l) { /* what it is given does not depend on positions */
            EACH_GROUP
                kernel_gradient(examples, where, FOR_ALL_KERNELS(u), PREPARED(given), none, none,
                                OF_GROUP(OF_LAYER(by_location)));
            break;
        }
        activate(rows * NARROW, s->layers[l].narrowed, work->h);
        EACH_GROUP {
            outer *by_outer = s->layers[l].by_outer + g * rows;
            map_back(rows, g, u, layer->weight, by_outer);
            kernel_gradient(examples, where, OUTER(by_outer), FOR_ALL_KERNELS(work->h), none,
                            none, OF_GROUP(OF_LAYER(by_location)));
            spread_sums(examples, s->layers[l].kernels + g * examples, by_outer, g > 0,
                        s->layers[l].by_hidden);
        }
        times_slope(rows * NARROW, s->layers[l].narrowed, s->layers[l].by_hidden, u);
        map(rows, NARROW, WIDE, u, layer->narrow_weight, 0, s->layers[l].by_activated);
        add_times_slope(rows * WIDE, s->layers[l].x, s->layers[l].by_activated, g);
    }
}

/* The tangents of a group's sums. Computing them again is as fast as keeping them. */
static void sum_tangents(long examples, int l, int g, const struct stored *s, struct scratch *t)
{
    sum_elements(examples, t->layers[l].kernels + g * examples, t->h, 0, t->outer_tangent);
    sum_elements(examples, s->layers[l].kernels + g * examples, t->dh, 1, t->outer_tangent);
}

static void tangent(long examples, struct locations where, const struct parameters *p,
                    const struct transposes *w, const prepared *given, const struct stored *s,
                    const float *t_location, struct scratch *t)
{
    long rows = examples * POINTS;
    memset(t->x, 0, rows * sizeof(wide));
    for (int l = 0; l < LAYERS; l++) {
        load_kernels(examples, where, OF_LAYER(t_location), t->layers[l].kernels);
        if (l) {
            memcpy(t->layers[l].x, t->x, rows * sizeof(wide));
            times_slope(rows * WIDE, s->layers[l].x, t->x, t->a);
            map(rows, WIDE, NARROW, t->a, w->layers[l].narrow_weight, 0, t->layers[l].narrowed);
            activate_with_tangent(rows * NARROW, s->layers[l].narrowed, t->layers[l].narrowed,
                                  t->h, t->dh);
            EACH_GROUP {
                sum_tangents(examples, l, g, s, t);
                map_sums(rows, g, t->outer_tangent, w->layers[l].weight, 0,
                         t->layers[l].convolved);
            }
        } else {
            sum_first(examples, t->layers[l].kernels, given, 0, t->layers[l].convolved);
        }
        times_slope(rows * NARROW, s->layers[l].convolved, t->layers[l].convolved, t->h);
        add_map(rows, NARROW, WIDE, t->h, w->layers[l].widen_weight, t->x);
    }
}

/* The gradient of the tangent by locations, and those that are added to others. */
static void second(long examples, struct locations where, const struct parameters *p,
                   const prepared *given, const struct stored *s, struct scratch *t,
                   float *by_location, struct parameters *sums, features *by_x0,
                   prepared *by_given)
{
    const struct elements none = {0};
    long rows = examples * POINTS;
    wide *a = t->a, *u = t->u, *b = t->b;
    narrow *narrow_a = t->narrow_a, *narrow_u = t->narrow_u;

    /* The tangent of V is last·swish'(x)·dx, so it does not depend on swish(x) itself. */
    times_slope(rows * WIDE, s->x, t->x, a);
    add_rows_up(rows, WIDE, a, sums->last);
    for (long r = 0; r < rows; r++) memcpy(u[r], p->last, sizeof(wide));
    memset(a, 0, rows * sizeof(wide));
    second_of_swish(rows * WIDE, s->x, t->x, u, a, b, t->by_block);

    for (int l = LAYERS - 1; l >= 0; l--) {
        const struct layer *layer = &p->layers[l];
        struct layer *sum = &sums->layers[l];
        activate_with_tangent(rows * NARROW, s->layers[l].convolved, t->layers[l].convolved,
                              t->h, t->dh);
        add_weight_gradient(rows, WIDE, NARROW, b, t->h, sum->widen_weight);
        add_weight_gradient(rows, WIDE, NARROW, t->by_block, t->dh, sum->widen_weight);
        add_rows_up(rows, WIDE, b, sum->widen_bias);
        map(rows, WIDE, NARROW, b, layer->widen_weight, 0, t->narrow_b);
        second_of_swish(rows * NARROW, s->layers[l].convolved, t->layers[l].convolved,
                        s->layers[l].by_convolved_activated, t->narrow_b, narrow_a, narrow_u);
        add_rows_up(rows, NARROW, narrow_a, sum->bias);
        if (!l) {
            EACH_GROUP
                kernel_gradient(examples, where, FOR_ALL_KERNELS(narrow_a), PREPARED(given), none,
                                none, OF_GROUP(OF_LAYER(by_location)));
            spread_first(examples, s->layers[l].kernels, narrow_a, by_given);
            spread_first(examples, t->layers[l].kernels, narrow_u, by_given);
            break;
        }
        activate_with_tangent(rows * NARROW, s->layers[l].narrowed, t->layers[l].narrowed, t->h,
                              t->dh);
        EACH_GROUP {
            const outer *by_outer = s->layers[l].by_outer + g * rows;
            sum_tangents(examples, l, g, s, t);
            add_map_gradient(rows, g, narrow_u, t->outer_tangent, sum->weight);
            sum_elements(examples, s->layers[l].kernels + g * examples, t->h, 0, t->outer);
            add_map_gradient(rows, g, narrow_a, t->outer, sum->weight);
            map_back(rows, g, narrow_a, layer->weight, t->outer);
            kernel_gradient(examples, where, OUTER(t->outer), FOR_ALL_KERNELS(t->h),
                            OUTER(by_outer), FOR_ALL_KERNELS(t->dh),
                            OF_GROUP(OF_LAYER(by_location)));
            spread_sums(examples, s->layers[l].kernels + g * examples, t->outer, g > 0,
                        t->narrow_b);
            spread_sums(examples, t->layers[l].kernels + g * examples, by_outer, 1, t->narrow_b);
        }
        second_of_swish(rows * NARROW, s->layers[l].narrowed, t->layers[l].narrowed,
                        s->layers[l].by_hidden, t->narrow_b, narrow_a, narrow_u);
        activate_with_tangent(rows * WIDE, s->layers[l].x, t->layers[l].x, a, u);
        add_weight_gradient(rows, NARROW, WIDE, narrow_a, a, sum->narrow_weight);
        add_weight_gradient(rows, NARROW, WIDE, narrow_u, u, sum->narrow_weight);
        add_rows_up(rows, NARROW, narrow_a, sum->narrow_bias);
        map(rows, NARROW, WIDE, narrow_a, layer->narrow_weight, 0, a);
        second_of_swish(rows * WIDE, s->layers[l].x, t->layers[l].x, s->layers[l].by_activated,
                        a, a, u);
        add(rows * WIDE, a, b);
        add(rows * WIDE, u, t->by_block);
    }
    add(rows * WIDE, b, by_x0);
}

#include "passes.h"
