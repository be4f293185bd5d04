/* LieSelfAttention with scores q·k + MLP(location), and their plain average over the keys:

   scores[i][j] = q[i]·k[j] / sqrt(C) + MLP(x[i][j]),  out[i] = sum_j scores[i][j]·v[j] / count.

   The queries of an example are computed a few at a time, from their locations to their averages.
   The scores of all pairs are never stored, in neither direction, so that memory does not grow
   with the square of a set.

   Arrays are contiguous: queries, keys and values together (rows, 3, heads, C), locations
   (IN, batch, n, n), out (rows, heads, C). The elements of example b are counts[b] rows from row
   rows[b] on; nothing is written for others. C, the width of a head, and the widths of the MLP,
   of which OUT is 1, are given by the compiler's command line. */

#include <omp.h>

#include "head_mlp.h"

#define WIDTH (heads * C)
/* Number 0 of part p (queries, keys, values) of a head in row i. */
#define ROW(array, i, p) ((array) + ((row + (i)) * 3 + (p)) * WIDTH + m * C)
#define OUT_ROW(array, i) ((array) + (row + (i)) * WIDTH + m * C)
#define EACH_CHANNEL for (int c = 0; c < C; c++)

enum part { QUERY, KEY, VALUE };

/* One part of a head for all keys, with keys in lanes: to[block][channel]. */
static void load_keys(long heads, long row, long m, long count, const float *qkv, enum part part,
                      vector (*to)[C])
{
    for (long j = 0; j < (count + LANES - 1) / LANES * LANES; j++)
        EACH_CHANNEL to[j / LANES][c][j % LANES] = j < count ? ROW(qkv, j, part)[c] : 0.0f;
}

static void store_keys(long heads, long row, long m, long count, vector (*from)[C],
                       enum part part, float *qkv)
{
    for (long j = 0; j < count; j++)
        EACH_CHANNEL ROW(qkv, j, part)[c] = from[j / LANES][c][j % LANES];
}

/* Scratch for each thread: arrays of the keys, and arrays of the pairs of some queries. */
#define KEY_ARRAYS 4
#define PAIR_ARRAYS (2 * IN + 2)
#define BLOCKS ((n + LANES - 1) / LANES)
/* Pairs at a time, if a query has fewer; and room for the last vector of a row. */
#define MOST_PAIRS 1024
#define PAIRS ((n > MOST_PAIRS ? n : MOST_PAIRS) + LANES)
#define SCRATCH (KEY_ARRAYS * BLOCKS * C * LANES + PAIR_ARRAYS * PAIRS)
#define KEYS(number) ((vector(*)[C])own + (number) * BLOCKS)
#define OF_PAIRS(number) (own + KEY_ARRAYS * BLOCKS * C * LANES + (number) * PAIRS)

/* The locations of the keys of some queries, one after the other without a gap: to[IN][PAIRS]. */
static inline void load_locations(long batch, long n, long b, long first, long last, long count,
                                  const float *x, float *to)
{
    for (int k = 0; k < IN; k++)
        for (long i = first; i < last; i++)
            __builtin_memcpy(to + k * PAIRS + (i - first) * count,
                             x + ((k * batch + b) * n + i) * n, count * sizeof(float));
}

/* The sum over channels of numbers, one for each channel, times vectors. */
static inline vector dot(const float *numbers, const vector *vectors)
{
    vector sum = {0};
    EACH_CHANNEL sum += numbers[c] * vectors[c];
    return sum;
}

long scratch_size(long n)
{
    return (SCRATCH + LANES - 1) / LANES * LANES;
}

/* How many queries at a time. */
static long queries_at_once(long count)
{
    return count >= MOST_PAIRS ? 1 : MOST_PAIRS / count;
}

void value(long batch, long n, long heads, long threads, const long *counts, const long *rows,
           const float *x, const float *qkv, const struct head *parameters, float *scratch,
           float *out)
{
    _Pragma("omp parallel for schedule(dynamic) num_threads(threads)")
    for (long task = 0; task < batch * heads; task++) {
        long b = task / heads, m = task % heads, count = counts[b], row = rows[b];
        float *own = scratch + omp_get_thread_num() * scratch_size(n);
        vector(*keys)[C] = KEYS(0), (*values_)[C] = KEYS(1);
        float *locations = OF_PAIRS(0), *scores = OF_PAIRS(IN);
        load_keys(heads, row, m, count, qkv, KEY, keys);
        load_keys(heads, row, m, count, qkv, VALUE, values_);
        for (long first = 0, step = count ? queries_at_once(count) : 1; first < count;
             first += step) {
            long last = first + step < count ? first + step : count;
            long pairs = (last - first) * count;
            load_locations(batch, n, b, first, last, count, x, locations);
            for (long at = 0; at < pairs; at += LANES) {
                struct block f;
                for (int k = 0; k < IN; k++)
                    f.x[k] = load_some(locations + k * PAIRS + at, pairs - at);
                values(&parameters[m], &f);
                __builtin_memcpy(scores + at, &f.h3[0], sizeof(vector));
            }
            for (long i = first; i < last; i++) {
                vector sum[C] = {0};
                float q[C];
                EACH_CHANNEL q[c] = ROW(qkv, i, QUERY)[c] / __builtin_sqrtf(C);
                for (long at = 0; at < count; at += LANES) {
                    const float *score = scores + (i - first) * count + at;
                    vector s = load_some(score, count - at) + dot(q, keys[at / LANES]);
                    EACH_CHANNEL sum[c] += s * values_[at / LANES][c];
                }
                EACH_CHANNEL OUT_ROW(out, i)[c] = sum_of_lanes(sum[c]) / count;
            }
        }
    }
}

/* g: by out. by_parameters: (batch, heads), to be summed over the batch. by_x: zeros, or null. */
void gradient(long batch, long n, long heads, long threads, const long *counts, const long *rows,
              const float *x, const float *qkv, const struct head *parameters, const float *g,
              float *scratch, float *by_qkv, struct head *by_parameters, float *by_x)
{
    /* All heads add to the same by_x, so that one thread has to do them. */
    long together = by_x ? heads : 1;
    _Pragma("omp parallel for schedule(dynamic) num_threads(threads)")
    for (long task = 0; task < batch * heads / together; task++)
        for (long h = task * together; h < (task + 1) * together; h++) {
            long b = h / heads, m = h % heads, count = counts[b], row = rows[b];
            float *own = scratch + omp_get_thread_num() * scratch_size(n);
            vector(*keys)[C] = KEYS(0), (*values_)[C] = KEYS(1);
            vector(*by_keys)[C] = KEYS(2), (*by_values)[C] = KEYS(3);
            float *locations = OF_PAIRS(0), *by_locations = OF_PAIRS(IN);
            float *scores = OF_PAIRS(2 * IN), *by_scores = OF_PAIRS(2 * IN + 1);
            load_keys(heads, row, m, count, qkv, KEY, keys);
            load_keys(heads, row, m, count, qkv, VALUE, values_);
            for (long k = 0; k < BLOCKS; k++)
                EACH_CHANNEL by_keys[k][c] = by_values[k][c] = (vector){0};
            struct sums sums = {0};
            for (long first = 0, step = count ? queries_at_once(count) : 1; first < count;
                 first += step) {
                long last = first + step < count ? first + step : count;
                long pairs = (last - first) * count;
                for (long i = first; i < last; i++) {
                    float go[C];
                    EACH_CHANNEL go[c] = OUT_ROW(g, i)[c] / count;
                    for (long at = 0; at < count; at += LANES) {
                        /* What is beyond the last key, the next query's overwrites. */
                        vector by_score = dot(go, values_[at / LANES]);
                        float *to = by_scores + (i - first) * count + at;
                        __builtin_memcpy(to, &by_score, sizeof(vector));
                    }
                }
                load_locations(batch, n, b, first, last, count, x, locations);
                for (long at = 0; at < pairs; at += LANES) {
                    struct block f, d;
                    struct derivatives s;
                    for (int k = 0; k < IN; k++)
                        f.x[k] = load_some(locations + k * PAIRS + at, pairs - at);
                    values_and_derivatives(&parameters[m], &f, &s);
                    d.h3[0] = load_some(by_scores + at, pairs - at);
                    gradients(&parameters[m], &s, &d);
                    add_parameter_gradients(&f, &d, &sums);
                    __builtin_memcpy(scores + at, &f.h3[0], sizeof(vector));
                    if (by_x)
                        for (int k = 0; k < IN; k++)
                            __builtin_memcpy(by_locations + k * PAIRS + at, &d.x[k],
                                             sizeof(vector));
                }
                for (long i = first; i < last; i++) {
                    vector by_q[C] = {0};
                    float q[C], go[C];
                    EACH_CHANNEL q[c] = ROW(qkv, i, QUERY)[c] / __builtin_sqrtf(C);
                    EACH_CHANNEL go[c] = OUT_ROW(g, i)[c] / count;
                    for (long at = 0; at < count; at += LANES) {
                        long k = at / LANES, pair = (i - first) * count + at;
                        vector s = load_some(scores + pair, count - at) + dot(q, keys[k]);
                        vector by_s = load_some(by_scores + pair, count - at);
                        EACH_CHANNEL {
                            by_q[c] += by_s * keys[k][c];
                            by_keys[k][c] += by_s * q[c];
                            by_values[k][c] += s * go[c];
                        }
                    }
                    EACH_CHANNEL
                        ROW(by_qkv, i, QUERY)[c] = sum_of_lanes(by_q[c]) / __builtin_sqrtf(C);
                    if (by_x)
                        for (int k = 0; k < IN; k++)
                            for (long j = 0; j < count; j++)
                                by_x[((k * batch + b) * n + i) * n + j] +=
                                    by_locations[k * PAIRS + (i - first) * count + j];
                }
            }
            store_keys(heads, row, m, count, by_keys, KEY, by_qkv);
            store_keys(heads, row, m, count, by_values, VALUE, by_qkv);
            total(&sums, &by_parameters[h]);
        }
}
