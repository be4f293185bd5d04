/* A LieTransformer V and its derivatives: ∂V/∂x for what the layers see of positions, which are
   the scores of locations, and the gradient of the tangent of V.

   The sizes are given by the compiler's command line: POINTS, the elements of an example; LAYERS;
   HEADS; HEAD_WIDTH; ROW_LENGTH, WIDTH filled up to whole machine vectors. All that fills up is
   zero. The features of elements at the first layer, and their queries, keys and values, do not
   depend on positions: they are given. */

#include <string.h>

#define WIDTH (HEADS * HEAD_WIDTH)
#define EPSILON 1e-5f

typedef float row[ROW_LENGTH];
typedef row row3[3];
typedef row features[POINTS];
typedef row3 prepared[POINTS];

#include "lanes.h"
#include "rows.h"
#include "chunks.h"
#define LEAST_COLUMNS ROW_LENGTH
#include "product.h"
#include "layer_norm.h"
#include "pair_attention.h"

/* A linear map, and what is added. */
struct linear {
    row weight[ROW_LENGTH];
    row bias;
};

struct layer {
    struct norm attention_norm;
    row qkv[3 * ROW_LENGTH];
    float qkv_bias[3 * ROW_LENGTH];
    struct linear output;
    struct norm mlp_norm;
    struct linear mlp[2];
};

struct parameters {
    struct layer layers[LAYERS];
    struct linear head[2];
    row last;
};

/* The weights again, for the products from inputs to outputs. */
struct transposes {
    struct {
        row3 qkv[ROW_LENGTH];
        row output[ROW_LENGTH], mlp[2][ROW_LENGTH];
    } layers[LAYERS];
    row head[2][ROW_LENGTH];
};

/* What the gradient of the tangent needs of the value and the gradient, of one chunk. A row is an
   element, in `pooled`, `head` and `by_…` of these an example. */
struct stored {
    struct {
        row *normal, *attended, *mlp_normal, *before[2]; /* before swish */
        float *inverse, *mlp_inverse;
        row3 *qkv;
        scores *scores;
        /* gradients by the outputs of norms, attention, block, and the first layer of the MLP */
        row *by_norm, *by_attended, *by_sum, *by_mlp_norm, *by_hidden, *by_block;
        row3 *by_qkv;
        scores *by_scores;
    } layers[LAYERS];
    row *pooled, *head[2], *by_activated, *by_head;
};

/* What one chunk needs for a moment. */
struct scratch {
    struct {
        row *input, *norm, *attended, *middle, *mlp_norm, *before[2]; /* tangents */
        row3 *qkv;
        scores *scores;
    } layers[LAYERS];
    row *pooled, *head[2], *activated[2];
    row *x, *a, *u, *h, *t, *b;
    row3 *by_qkv;
};

static long lay_out_stored(float *base, long examples, struct stored *s)
{
    long at = 0, rows = examples * POINTS;
    for (int l = 0; l < LAYERS; l++) {
        TAKE(s->layers[l].normal, rows);
        TAKE(s->layers[l].inverse, rows);
        TAKE(s->layers[l].qkv, rows);
        TAKE(s->layers[l].scores, examples);
        TAKE(s->layers[l].attended, rows);
        TAKE(s->layers[l].mlp_normal, rows);
        TAKE(s->layers[l].mlp_inverse, rows);
        TAKE(s->layers[l].before[0], rows);
        TAKE(s->layers[l].before[1], rows);
        TAKE(s->layers[l].by_block, rows);
        TAKE(s->layers[l].by_hidden, rows);
        TAKE(s->layers[l].by_mlp_norm, rows);
        TAKE(s->layers[l].by_sum, rows);
        TAKE(s->layers[l].by_attended, rows);
        TAKE(s->layers[l].by_scores, examples);
        TAKE(s->layers[l].by_qkv, rows);
        TAKE(s->layers[l].by_norm, rows);
    }
    TAKE(s->pooled, examples);
    TAKE(s->head[0], examples);
    TAKE(s->head[1], examples);
    TAKE(s->by_head, examples);
    TAKE(s->by_activated, examples);
    return at;
}

static long lay_out_scratch(float *base, long examples, struct scratch *s)
{
    long at = 0, rows = examples * POINTS;
    for (int l = 0; l < LAYERS; l++) {
        TAKE(s->layers[l].input, rows);
        TAKE(s->layers[l].norm, rows);
        TAKE(s->layers[l].qkv, rows);
        TAKE(s->layers[l].scores, examples);
        TAKE(s->layers[l].attended, rows);
        TAKE(s->layers[l].middle, rows);
        TAKE(s->layers[l].mlp_norm, rows);
        TAKE(s->layers[l].before[0], rows);
        TAKE(s->layers[l].before[1], rows);
    }
    TAKE(s->pooled, examples);
    TAKE(s->head[0], examples);
    TAKE(s->head[1], examples);
    TAKE(s->activated[0], examples);
    TAKE(s->activated[1], examples);
    TAKE(s->x, rows);
    TAKE(s->a, rows);
    TAKE(s->u, rows);
    TAKE(s->h, rows);
    TAKE(s->t, rows);
    TAKE(s->b, rows);
    TAKE(s->by_qkv, rows);
    return at;
}

/* ---- rows of features */

/* Numbers of a row, and of the three of queries, keys and values. */
#define ONE ROW_LENGTH
#define THREE (3 * ROW_LENGTH)

/* The mean over the elements of each example; and its transpose. */
static void pool(long examples, const row *x, row *mean)
{
    for (long e = 0; e < examples; e++)
        for (int i = 0; i < ROW_LENGTH; i++) {
            float sum = 0;
            for (int p = 0; p < POINTS; p++) sum += x[e * POINTS + p][i];
            mean[e][i] = sum / POINTS;
        }
}

static void spread(long examples, const row *mean, row *x)
{
    for (long e = 0; e < examples; e++)
        for (int p = 0; p < POINTS; p++)
            for (int i = 0; i < ROW_LENGTH; i++) x[e * POINTS + p][i] = mean[e][i] / POINTS;
}

/* The gradients of a linear map of x, whose tangent is t: a·y + u·dy, by weight and bias. */
static void add_linear_gradient(long rows, const row *a, const row *x, const row *u, const row *t,
                                struct linear *sums)
{
    add_weight_gradient(rows, ONE, ONE, a, x, sums->weight);
    add_weight_gradient(rows, ONE, ONE, u, t, sums->weight);
    add_rows_up(rows, ROW_LENGTH, a, sums->bias);
}

/* ---- the passes through all layers, of one chunk */

/* Where the numbers of a layer's locations begin. */
#define OF_LAYER(array) ((array) + l * HEADS * where.stride)
/* Queries, keys and values of a layer. */
#define QKV (l ? s->layers[l].qkv : given[0])

static void value(long examples, struct locations where, const struct parameters *p,
                  const struct transposes *w, const features *x0, const prepared *given,
                  const float *location, struct stored *s, struct scratch *work)
{
    long rows = examples * POINTS;
    row *x = work->x, *h = work->h;
    memcpy(x, x0, rows * sizeof(row));
    for (int l = 0; l < LAYERS; l++) {
        const struct layer *layer = &p->layers[l];
        if (l) {
            normalise(rows, x, s->layers[l].normal, s->layers[l].inverse);
            scale_and_shift(rows, &layer->attention_norm, s->layers[l].normal, h);
            map(rows, ONE, THREE, h, w->layers[l].qkv, layer->qkv_bias, s->layers[l].qkv);
        }
        attention_value(examples, where, QKV, OF_LAYER(location), s->layers[l].scores,
                        s->layers[l].attended);
        for (long r = 0; r < rows; r++)
            for (int i = 0; i < ROW_LENGTH; i++) x[r][i] += layer->output.bias[i];
        add_map(rows, ONE, ONE, s->layers[l].attended, w->layers[l].output, x);
        normalise(rows, x, s->layers[l].mlp_normal, s->layers[l].mlp_inverse);
        scale_and_shift(rows, &layer->mlp_norm, s->layers[l].mlp_normal, h);
        map(rows, ONE, ONE, h, w->layers[l].mlp[0], layer->mlp[0].bias, s->layers[l].before[0]);
        activate(rows * ROW_LENGTH, s->layers[l].before[0], h);
        map(rows, ONE, ONE, h, w->layers[l].mlp[1], layer->mlp[1].bias, s->layers[l].before[1]);
        add_activated(rows * ROW_LENGTH, s->layers[l].before[1], x);
    }
    pool(examples, x, s->pooled);
    activate(examples * ROW_LENGTH, s->pooled, h);
    map(examples, ONE, ONE, h, w->head[0], p->head[0].bias, s->head[0]);
    activate(examples * ROW_LENGTH, s->head[0], h);
    map(examples, ONE, ONE, h, w->head[1], p->head[1].bias, s->head[1]);
}

static void gradient(long examples, struct locations where, const struct parameters *p,
                     const prepared *given, struct stored *s, struct scratch *work,
                     float *by_location)
{
    long rows = examples * POINTS;
    row *u = work->u, *g = work->b;
    for (long e = 0; e < examples; e++) memcpy(g[e], p->last, sizeof(row));
    times_slope(examples * ROW_LENGTH, s->head[1], g, u);
    map(examples, ONE, ONE, u, p->head[1].weight, 0, s->by_head);
    times_slope(examples * ROW_LENGTH, s->head[0], s->by_head, u);
    map(examples, ONE, ONE, u, p->head[0].weight, 0, s->by_activated);
    times_slope(examples * ROW_LENGTH, s->pooled, s->by_activated, u);
    spread(examples, u, g);
    for (int l = LAYERS - 1; l >= 0; l--) {
        const struct layer *layer = &p->layers[l];
        memcpy(s->layers[l].by_block, g, rows * sizeof(row));
        times_slope(rows * ROW_LENGTH, s->layers[l].before[1], g, u);
        map(rows, ONE, ONE, u, layer->mlp[1].weight, 0, s->layers[l].by_hidden);
        times_slope(rows * ROW_LENGTH, s->layers[l].before[0], s->layers[l].by_hidden, u);
        map(rows, ONE, ONE, u, layer->mlp[0].weight, 0, s->layers[l].by_mlp_norm);
        add_norm_gradient(rows, &layer->mlp_norm, s->layers[l].mlp_normal,
                          s->layers[l].mlp_inverse, s->layers[l].by_mlp_norm, g);
        memcpy(s->layers[l].by_sum, g, rows * sizeof(row));
        map(rows, ONE, ONE, g, layer->output.weight, 0, s->layers[l].by_attended);
        attention_gradient(examples, where, QKV, s->layers[l].scores, s->layers[l].by_attended,
                           s->layers[l].by_scores, OF_LAYER(by_location),
                           l ? s->layers[l].by_qkv : 0);
        if (!l) break; /* what the first layer is given does not depend on positions */
        map(rows, THREE, ONE, s->layers[l].by_qkv, layer->qkv, 0, s->layers[l].by_norm);
        add_norm_gradient(rows, &layer->attention_norm, s->layers[l].normal,
                          s->layers[l].inverse, s->layers[l].by_norm, g);
    }
}

static void tangent(long examples, struct locations where, const struct parameters *p,
                    const struct transposes *w, const prepared *given, const struct stored *s,
                    const float *t_location, struct scratch *t)
{
    long rows = examples * POINTS;
    row *x = t->x, *h = t->h;
    memset(x, 0, rows * sizeof(row));
    for (int l = 0; l < LAYERS; l++) {
        const struct layer *layer = &p->layers[l];
        if (l) {
            memcpy(t->layers[l].input, x, rows * sizeof(row));
            norm_tangent(rows, &layer->attention_norm, s->layers[l].normal,
                         s->layers[l].inverse, x, t->layers[l].norm);
            map(rows, ONE, THREE, t->layers[l].norm, w->layers[l].qkv, 0, t->layers[l].qkv);
        }
        attention_tangent(examples, where, QKV, l ? t->layers[l].qkv : 0, s->layers[l].scores,
                          OF_LAYER(t_location), t->layers[l].scores, t->layers[l].attended);
        add_map(rows, ONE, ONE, t->layers[l].attended, w->layers[l].output, x);
        memcpy(t->layers[l].middle, x, rows * sizeof(row));
        norm_tangent(rows, &layer->mlp_norm, s->layers[l].mlp_normal, s->layers[l].mlp_inverse,
                     x, t->layers[l].mlp_norm);
        map(rows, ONE, ONE, t->layers[l].mlp_norm, w->layers[l].mlp[0], 0, t->layers[l].before[0]);
        times_slope(rows * ROW_LENGTH, s->layers[l].before[0], t->layers[l].before[0], h);
        map(rows, ONE, ONE, h, w->layers[l].mlp[1], 0, t->layers[l].before[1]);
        add_times_slope(rows * ROW_LENGTH, s->layers[l].before[1], t->layers[l].before[1], x);
    }
    pool(examples, x, t->pooled);
    times_slope(examples * ROW_LENGTH, s->pooled, t->pooled, t->activated[0]);
    map(examples, ONE, ONE, t->activated[0], w->head[0], 0, t->head[0]);
    times_slope(examples * ROW_LENGTH, s->head[0], t->head[0], t->activated[1]);
    map(examples, ONE, ONE, t->activated[1], w->head[1], 0, t->head[1]);
}

/* The gradient of the tangent by locations, and those that are added to others. */
static void second(long examples, struct locations where, const struct parameters *p,
                   const prepared *given, const struct stored *s, struct scratch *t,
                   float *by_location, struct parameters *sums, features *by_x0,
                   prepared *by_given)
{
    long rows = examples * POINTS;
    row *a = t->a, *u = t->u, *h = t->h, *dh = t->t, *b = t->b, *x = t->x;

    /* The tangent of V is last·dh, so it does not depend on h itself. */
    memset(b, 0, examples * sizeof(row));
    for (long e = 0; e < examples; e++) memcpy(x[e], p->last, sizeof(row));
    second_of_swish(examples * ROW_LENGTH, s->head[1], t->head[1], x, b, a, u);
    times_slope(examples * ROW_LENGTH, s->head[1], t->head[1], dh);
    add_rows_up(examples, ROW_LENGTH, dh, sums->last);
    activate(examples * ROW_LENGTH, s->head[0], h);
    add_linear_gradient(examples, a, h, u, t->activated[1], &sums->head[1]);
    map(examples, ONE, ONE, a, p->head[1].weight, 0, b);
    second_of_swish(examples * ROW_LENGTH, s->head[0], t->head[0], s->by_head, b, a, u);
    activate(examples * ROW_LENGTH, s->pooled, h);
    add_linear_gradient(examples, a, h, u, t->activated[0], &sums->head[0]);
    map(examples, ONE, ONE, a, p->head[0].weight, 0, b);
    second_of_swish(examples * ROW_LENGTH, s->pooled, t->pooled, s->by_activated, b, a, u);
    spread(examples, a, b);

    for (int l = LAYERS - 1; l >= 0; l--) {
        const struct layer *layer = &p->layers[l];
        struct layer *sum = &sums->layers[l];
        second_of_swish(rows * ROW_LENGTH, s->layers[l].before[1], t->layers[l].before[1],
                        s->layers[l].by_block, b, a, u);
        activate_with_tangent(rows * ROW_LENGTH, s->layers[l].before[0], t->layers[l].before[0],
                              h, dh);
        add_linear_gradient(rows, a, h, u, dh, &sum->mlp[1]);
        map(rows, ONE, ONE, a, layer->mlp[1].weight, 0, x);
        second_of_swish(rows * ROW_LENGTH, s->layers[l].before[0], t->layers[l].before[0],
                        s->layers[l].by_hidden, x, a, u);
        scale_and_shift(rows, &layer->mlp_norm, s->layers[l].mlp_normal, h);
        add_linear_gradient(rows, a, h, u, t->layers[l].mlp_norm, &sum->mlp[0]);
        map(rows, ONE, ONE, a, layer->mlp[0].weight, 0, x);
        add_norm_second(rows, &layer->mlp_norm, s->layers[l].mlp_normal,
                        s->layers[l].mlp_inverse, t->layers[l].middle, s->layers[l].by_mlp_norm,
                        x, b, &sum->mlp_norm);
        add_linear_gradient(rows, b, s->layers[l].attended, s->layers[l].by_sum,
                            t->layers[l].attended, &sum->output);
        map(rows, ONE, ONE, b, layer->output.weight, 0, x);
        attention_second(examples, where, QKV, l ? t->layers[l].qkv : 0, s->layers[l].scores,
                         t->layers[l].scores, s->layers[l].by_attended, s->layers[l].by_scores,
                         x, OF_LAYER(by_location), t->by_qkv);
        if (!l) break;
        scale_and_shift(rows, &layer->attention_norm, s->layers[l].normal, h);
        add_weight_gradient(rows, THREE, ONE, t->by_qkv, h, sum->qkv);
        add_weight_gradient(rows, THREE, ONE, s->layers[l].by_qkv, t->layers[l].norm, sum->qkv);
        add_rows_up(rows, THREE, t->by_qkv, sum->qkv_bias);
        map(rows, THREE, ONE, t->by_qkv, layer->qkv, 0, x);
        add_norm_second(rows, &layer->attention_norm, s->layers[l].normal, s->layers[l].inverse,
                        t->layers[l].input, s->layers[l].by_norm, x, b, &sum->attention_norm);
    }
    add(rows * ROW_LENGTH, b, by_x0);
    add(rows * 3 * ROW_LENGTH, t->by_qkv, by_given);
}

#include "passes.h"
