/* Attention among the few elements of each example: scores q·k + location, their plain average.

   scores[i][j] = q[i]·k[j] / sqrt(C) + location[i][j],  out[i] = sum_j scores[i][j]·v[j] / POINTS.
   Value, gradient, tangent, and gradient of the tangent, for all heads.

   Arrays are contiguous: queries, keys and values together (batch, POINTS, 3, HEADS, C), what is
   averaged (batch, POINTS, HEADS, C), scores and location (HEADS, batch, POINTS, POINTS). */

#define C HEAD_WIDTH
#define LANES 16
#define VECTORS(count) (((count) + LANES - 1) / LANES)

/* Rows are filled up to whole machine vectors; with zeros, because some other numbers are slow. */
typedef float vector __attribute__((vector_size(64), may_alias));
typedef vector vectors[POINTS][VECTORS(C)];
typedef vector transposed[C][VECTORS(POINTS)];
typedef vector pairs[POINTS][VECTORS(POINTS)];

/* Number i of a row. */
#define AT(row, i) (((const float *)(row))[i])

#define by_root (1.0f / __builtin_sqrtf(C))
#define by_count (1.0f / POINTS)

/* Queries, keys and values in an array of all three. */
enum part { Q, K, V };
#define ROW (3 * HEADS * C)
#define PART(array, part) ((array) + b * POINTS * ROW + (part * HEADS + m) * C)
/* Those of a head in an array of one. */
#define ROWS(array) ((array) + (b * POINTS * HEADS + m) * C)
#define PAIRS(array) ((array) + (m * batch + b) * POINTS * POINTS)

static inline void load_row(const float *restrict from, int count, vector *to)
{
    to[VECTORS(count) - 1] = (vector){0};
    __builtin_memcpy(to, from, count * sizeof(float));
}

static inline void load(const float *from, long stride, vectors to)
{
    for (int i = 0; i < POINTS; i++) load_row(from + i * stride, C, to[i]);
}

static inline void load_transposed(const float *restrict from, long stride, transposed to)
{
    for (int c = 0; c < C; c++) {
        to[c][VECTORS(POINTS) - 1] = (vector){0};
        for (int i = 0; i < POINTS; i++) ((float *)to[c])[i] = from[i * stride + c];
    }
}

static inline void store(vectors from, long stride, float *restrict to)
{
    for (int i = 0; i < POINTS; i++)
        __builtin_memcpy(to + i * stride, from[i], C * sizeof(float));
}

static inline void load_pairs(const float *from, pairs to)
{
    for (int i = 0; i < POINTS; i++) load_row(from + i * POINTS, POINTS, to[i]);
}

static inline void store_pairs(pairs from, float *restrict to)
{
    for (int i = 0; i < POINTS; i++)
        __builtin_memcpy(to + i * POINTS, from[i], POINTS * sizeof(float));
}

/* s[i][j] += factor·x[i]·y[j], for y transposed */
static inline void add_products(float factor, vectors x, transposed y, pairs s)
{
    for (int i = 0; i < POINTS; i++)
        for (int v = 0; v < VECTORS(POINTS); v++) {
            vector sum = {0};
            for (int c = 0; c < C; c++) sum += AT(x[i], c) * y[c][v];
            s[i][v] += factor * sum;
        }
}

/* out[i] += factor·sum_j s[i][j]·x[j] */
static inline void add_rows(float factor, pairs s, vectors x, vectors out)
{
    for (int i = 0; i < POINTS; i++)
        for (int v = 0; v < VECTORS(C); v++) {
            vector sum = {0};
            for (int j = 0; j < POINTS; j++) sum += AT(s[i], j) * x[j][v];
            out[i][v] += factor * sum;
        }
}

/* out[j] += factor·sum_i s[i][j]·x[i] */
static inline void add_columns(float factor, pairs s, vectors x, vectors out)
{
    for (int j = 0; j < POINTS; j++)
        for (int v = 0; v < VECTORS(C); v++) {
            vector sum = {0};
            for (int i = 0; i < POINTS; i++) sum += AT(s[i], j) * x[i][v];
            out[j][v] += factor * sum;
        }
}

#define EACH_EXAMPLE_AND_HEAD                                                       \
    _Pragma("omp parallel for schedule(static) num_threads(threads)")               \
    for (long b = 0; b < batch; b++)                                                \
        for (long m = 0; m < HEADS; m++)

void value(long batch, long threads, const float *qkv, const float *location, float *scores,
           float *out)
{
    EACH_EXAMPLE_AND_HEAD {
        vectors q, v, o = {0};
        transposed k;
        pairs s;
        load(PART(qkv, Q), ROW, q);
        load_transposed(PART(qkv, K), ROW, k);
        load(PART(qkv, V), ROW, v);
        load_pairs(PAIRS(location), s);
        add_products(by_root, q, k, s);
        add_rows(by_count, s, v, o);
        store_pairs(s, PAIRS(scores));
        store(o, HEADS * C, ROWS(out));
    }
}

/* By scores (which is that by location) and, unless it is null, by qkv. */
void gradient(long batch, long threads, const float *qkv, const float *scores, const float *g,
              float *by_scores, float *by_qkv)
{
    EACH_EXAMPLE_AND_HEAD {
        vectors q, k, go, by_q = {0}, by_k = {0}, by_v = {0};
        transposed v;
        pairs s, gs = {0};
        load_transposed(PART(qkv, V), ROW, v);
        load(ROWS(g), HEADS * C, go);
        add_products(by_count, go, v, gs);
        store_pairs(gs, PAIRS(by_scores));
        if (!by_qkv) continue;
        load(PART(qkv, Q), ROW, q);
        load(PART(qkv, K), ROW, k);
        load_pairs(PAIRS(scores), s);
        add_rows(by_root, gs, k, by_q);
        add_columns(by_root, gs, q, by_k);
        add_columns(by_count, s, go, by_v);
        store(by_q, ROW, PART(by_qkv, Q));
        store(by_k, ROW, PART(by_qkv, K));
        store(by_v, ROW, PART(by_qkv, V));
    }
}

/* t: the tangent of qkv, null for zero */
void tangent(long batch, long threads, const float *qkv, const float *t, const float *scores,
             const float *t_location, float *t_scores, float *out)
{
    EACH_EXAMPLE_AND_HEAD {
        vectors q, v, tq, tv, o = {0};
        transposed k, tk;
        pairs s, ts;
        load_pairs(PAIRS(t_location), ts);
        load(PART(qkv, V), ROW, v);
        if (t) {
            load(PART(qkv, Q), ROW, q);
            load_transposed(PART(qkv, K), ROW, k);
            load(PART(t, Q), ROW, tq);
            load_transposed(PART(t, K), ROW, tk);
            load(PART(t, V), ROW, tv);
            load_pairs(PAIRS(scores), s);
            add_products(by_root, tq, k, ts);
            add_products(by_root, q, tk, ts);
            add_rows(by_count, s, tv, o);
        }
        add_rows(by_count, ts, v, o);
        store_pairs(ts, PAIRS(t_scores));
        store(o, HEADS * C, ROWS(out));
    }
}

/* The gradient of b·out + g·(tangent of out) by scores and by qkv. */
void second(long batch, long threads, const float *qkv, const float *t, const float *scores,
            const float *t_scores, const float *g, const float *g_scores, const float *b_out,
            float *by_scores, float *by_qkv)
{
    EACH_EXAMPLE_AND_HEAD {
        vectors q, k, tq, tk, go, bo, by_q = {0}, by_k = {0}, by_v = {0};
        transposed v, tv;
        pairs s, ts, gs, bs = {0};
        load(PART(qkv, Q), ROW, q);
        load(PART(qkv, K), ROW, k);
        load_transposed(PART(qkv, V), ROW, v);
        load(ROWS(g), HEADS * C, go);
        load(ROWS(b_out), HEADS * C, bo);
        load_pairs(PAIRS(scores), s);
        load_pairs(PAIRS(t_scores), ts);
        add_products(by_count, bo, v, bs);
        if (t) {
            load(PART(t, Q), ROW, tq);
            load(PART(t, K), ROW, tk);
            load_transposed(PART(t, V), ROW, tv);
            load_pairs(PAIRS(g_scores), gs);
            add_products(by_count, go, tv, bs);
            add_rows(by_root, gs, tk, by_q);
            add_columns(by_root, gs, tq, by_k);
        }
        add_rows(by_root, bs, k, by_q);
        add_columns(by_root, bs, q, by_k);
        add_columns(by_count, s, bo, by_v);
        add_columns(by_count, ts, go, by_v);
        store_pairs(bs, PAIRS(by_scores));
        store(by_q, ROW, PART(by_qkv, Q));
        store(by_k, ROW, PART(by_qkv, K));
        store(by_v, ROW, PART(by_qkv, V));
    }
}
