/* Attention among the few elements of each example: scores q·k + location, their plain average.

   scores[i][j] = q[i]·k[j] / sqrt(C) + location[i][j],  out[i] = sum_j scores[i][j]·v[j] / POINTS.
   Value, gradient, tangent, and gradient of the tangent, for all heads.

   Queries, keys and values are together in rows of three (POINTS, 3, ROW_LENGTH), what is averaged
   in rows of its own, scores are (HEADS, POINTS, POINTS), all for each example. */

#define C HEAD_WIDTH
#define VECTORS(count) (((count) + LANES - 1) / LANES)

/* Rows are filled up to whole machine vectors; with zeros, because some other numbers are slow. */
typedef vector vectors[POINTS][VECTORS(C)];
typedef vector transposed[C][VECTORS(POINTS)];
typedef vector pairs[POINTS][VECTORS(POINTS)];
typedef float scores[HEADS][POINTS][POINTS];

/* Number i of a row. */
#define AT(row, i) (((const float *)(row))[i])

#define by_root (1.0f / __builtin_sqrtf(C))
#define by_count (1.0f / POINTS)

/* Queries, keys and values of a head in rows of all three, and the distance between such rows. */
enum part { Q, K, V };
#define PART(array, part) \
    ((float *)((array) + e * POINTS) + part * ROW_LENGTH + m * C), 3 * ROW_LENGTH
/* Those of a head in rows of one. */
#define ROWS(array) ((float *)((array) + e * POINTS) + m * C), ROW_LENGTH

#define LOCATION(array) ((array) + m * where.stride + e * where.columns)

#define IN_VECTOR(count, v) ((count) - (v) * LANES < LANES ? (count) - (v) * LANES : LANES)
#define EACH_VECTOR_OF(count) \
    _Pragma("GCC unroll 8") for (int v = 0; v < VECTORS(count); v++)

static inline void load_row(const float *from, int count, vector *to)
{
    EACH_VECTOR_OF(count) to[v] = load_some(from + v * LANES, IN_VECTOR(count, v));
}

static inline void store_row(const vector *from, int count, float *to)
{
    EACH_VECTOR_OF(count) store_some(from[v], to + v * LANES, IN_VECTOR(count, v));
}

static inline void load(const float *from, long stride, vectors to)
{
    for (int i = 0; i < POINTS; i++) load_row(from + i * stride, C, to[i]);
}

static inline void load_transposed(const float *from, long stride, transposed to)
{
    for (int c = 0; c < C; c++)
        EACH_VECTOR_OF(POINTS) {
            vector row = {0};
            _Pragma("GCC unroll 16") for (int i = 0; i < IN_VECTOR(POINTS, v); i++)
                row = with_lane(row, i, from + (v * LANES + i) * stride + c);
            to[c][v] = row;
        }
}

static inline void store(vectors from, float *to, long stride)
{
    for (int i = 0; i < POINTS; i++) store_row(from[i], C, to + i * stride);
}

static inline void load_pairs(const float from[POINTS][POINTS], pairs to)
{
    for (int i = 0; i < POINTS; i++) load_row(from[i], POINTS, to[i]);
}

static inline void store_pairs(pairs from, float to[POINTS][POINTS])
{
    for (int i = 0; i < POINTS; i++) store_row(from[i], POINTS, to[i]);
}

static inline void load_locations(const float *from, struct locations where, pairs to)
{
    for (int i = 0; i < POINTS; i++)
        EACH_VECTOR_OF(POINTS) {
            const long *column = where.column + i * POINTS + v * LANES;
            vector row = {0};
            _Pragma("GCC unroll 16") for (int j = 0; j < IN_VECTOR(POINTS, v); j++)
                row = with_lane(row, j, from + column[j]);
            to[i][v] = row;
        }
}

static inline void sum_locations(pairs from, struct locations where, float *to)
{
    for (long c = 0; c < where.columns; c++) to[c] = 0;
    for (int i = 0; i < POINTS; i++)
        for (int j = 0; j < POINTS; j++)
            to[where.column[i * POINTS + j]] += AT(from[i], j);
}

/* Zeros for what fills up rows beyond the numbers of all heads. */
static inline void clear_rest(long rows, row *x)
{
    for (long r = 0; r < rows; r++)
        for (int i = HEADS * C; i < ROW_LENGTH; i++) x[r][i] = 0;
}

#define EACH_POINT(i) _Pragma("GCC unroll 16") for (int i = 0; i < POINTS; i++)

/* s[i][j] += factor·x[i]·y[j], for y transposed; all sums are in registers, if they are few */
static inline void add_products(float factor, vectors x, transposed y, pairs s)
{
    EACH_VECTOR_OF(POINTS) {
        vector sum[POINTS] = {0};
        for (int c = 0; c < C; c++) EACH_POINT(i) sum[i] += AT(x[i], c) * y[c][v];
        EACH_POINT(i) s[i][v] += factor * sum[i];
    }
}

/* out[i] += factor·sum_j s[i][j]·x[j] */
static inline void add_rows(float factor, pairs s, vectors x, vectors out)
{
    EACH_VECTOR_OF(C) {
        vector sum[POINTS] = {0};
        for (int j = 0; j < POINTS; j++) EACH_POINT(i) sum[i] += AT(s[i], j) * x[j][v];
        EACH_POINT(i) out[i][v] += factor * sum[i];
    }
}

/* out[j] += factor·sum_i s[i][j]·x[i] */
static inline void add_columns(float factor, pairs s, vectors x, vectors out)
{
    EACH_VECTOR_OF(C) {
        vector sum[POINTS] = {0};
        for (int i = 0; i < POINTS; i++) EACH_POINT(j) sum[j] += AT(s[i], j) * x[i][v];
        EACH_POINT(j) out[j][v] += factor * sum[j];
    }
}

#define EACH_EXAMPLE_AND_HEAD               \
    for (long e = 0; e < examples; e++)     \
        for (long m = 0; m < HEADS; m++)

static void attention_value(long examples, struct locations where, const row3 *qkv,
                            const float *location, scores *s_out, row *out)
{
    EACH_EXAMPLE_AND_HEAD {
        vectors q, v, o = {0};
        transposed k;
        pairs s;
        load(PART(qkv, Q), q);
        load_transposed(PART(qkv, K), k);
        load(PART(qkv, V), v);
        load_locations(LOCATION(location), where, s);
        add_products(by_root, q, k, s);
        add_rows(by_count, s, v, o);
        store_pairs(s, s_out[e][m]);
        store(o, ROWS(out));
    }
    clear_rest(examples * POINTS, out);
}

/* By scores, by location and, unless it is null, by qkv. */
static void attention_gradient(long examples, struct locations where, const row3 *qkv,
                               const scores *s_in, const row *g, scores *by_scores,
                               float *by_location, row3 *by_qkv)
{
    EACH_EXAMPLE_AND_HEAD {
        vectors q, k, go, by_q = {0}, by_k = {0}, by_v = {0};
        transposed v;
        pairs s, gs = {0};
        load_transposed(PART(qkv, V), v);
        load(ROWS(g), go);
        add_products(by_count, go, v, gs);
        store_pairs(gs, by_scores[e][m]);
        sum_locations(gs, where, LOCATION(by_location));
        if (!by_qkv) continue;
        load(PART(qkv, Q), q);
        load(PART(qkv, K), k);
        load_pairs(s_in[e][m], s);
        add_rows(by_root, gs, k, by_q);
        add_columns(by_root, gs, q, by_k);
        add_columns(by_count, s, go, by_v);
        store(by_q, PART(by_qkv, Q));
        store(by_k, PART(by_qkv, K));
        store(by_v, PART(by_qkv, V));
    }
    if (by_qkv) clear_rest(examples * POINTS * 3, *by_qkv);
}

/* t: the tangent of qkv, null for zero */
static void attention_tangent(long examples, struct locations where, const row3 *qkv,
                              const row3 *t, const scores *s_in, const float *t_location,
                              scores *t_scores, row *out)
{
    EACH_EXAMPLE_AND_HEAD {
        vectors q, v, tq, tv, o = {0};
        transposed k, tk;
        pairs s, ts;
        load_locations(LOCATION(t_location), where, ts);
        load(PART(qkv, V), v);
        if (t) {
            load(PART(qkv, Q), q);
            load_transposed(PART(qkv, K), k);
            load(PART(t, Q), tq);
            load_transposed(PART(t, K), tk);
            load(PART(t, V), tv);
            load_pairs(s_in[e][m], s);
            add_products(by_root, tq, k, ts);
            add_products(by_root, q, tk, ts);
            add_rows(by_count, s, tv, o);
        }
        add_rows(by_count, ts, v, o);
        store_pairs(ts, t_scores[e][m]);
        store(o, ROWS(out));
    }
    clear_rest(examples * POINTS, out);
}

/* The gradient of b·out + g·(tangent of out) by location and by qkv. */
static void attention_second(long examples, struct locations where, const row3 *qkv,
                             const row3 *t, const scores *s_in, const scores *t_scores,
                             const row *g, const scores *g_scores, const row *b,
                             float *by_location, row3 *by_qkv)
{
    EACH_EXAMPLE_AND_HEAD {
        vectors q, k, tq, tk, go, bo, by_q = {0}, by_k = {0}, by_v = {0};
        transposed v, tv;
        pairs s, ts, gs, bs = {0};
        load(PART(qkv, Q), q);
        load(PART(qkv, K), k);
        load_transposed(PART(qkv, V), v);
        load(ROWS(g), go);
        load(ROWS(b), bo);
        load_pairs(s_in[e][m], s);
        load_pairs(t_scores[e][m], ts);
        add_products(by_count, bo, v, bs);
        if (t) {
            load(PART(t, Q), tq);
            load(PART(t, K), tk);
            load_transposed(PART(t, V), tv);
            load_pairs(g_scores[e][m], gs);
            add_products(by_count, go, tv, bs);
            add_rows(by_root, gs, tk, by_q);
            add_columns(by_root, gs, tq, by_k);
        }
        add_rows(by_root, bs, k, by_q);
        add_columns(by_root, bs, q, by_k);
        add_columns(by_count, s, bo, by_v);
        add_columns(by_count, ts, go, by_v);
        sum_locations(bs, where, LOCATION(by_location));
        store(by_q, PART(by_qkv, Q));
        store(by_k, PART(by_qkv, K));
        store(by_v, PART(by_qkv, V));
    }
    clear_rest(examples * POINTS * 3, *by_qkv);
}
