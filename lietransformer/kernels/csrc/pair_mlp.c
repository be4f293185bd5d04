/* A perceptron of pairs for every attention head, of three layers with swish after each. The first
   one is query[i] + key[j] + W·location[i][j], before its swish; W is w1, and b1 is not used.

   The layers of all pairs are never stored, in neither direction. The queries of an example are
   computed a few at a time, with their pairs one after the other without a gap, so that the lanes
   of vectors are used however few keys there are.

   Arrays are contiguous: query (heads, batch, g, HIDDEN), key (heads, batch, HIDDEN, n), location
   (1 or heads, IN, batch, g, n), out (heads, batch, g, n). Of example b, the first counts[b]
   queries and keys are computed, or all if counts is null; nothing is written for others. IN and
   HIDDEN are given by the compiler's command line, and OUT, which is 1. */

#include <omp.h>

#include "head_mlp.h"

/* Pairs at a time, if a query has fewer: such that one layer of them stays in the nearest cache.
   And room for the last vector of a row. */
#define MOST_PAIRS 192
#define WHOLE(count) (((count) + LANES - 1) / LANES * LANES)
#define PAIRS (WHOLE(n > MOST_PAIRS ? n : MOST_PAIRS) + LANES)

/* Scratch for each thread: rows of the pairs of some queries, and of keys. */
#define Z1 own
#define H1 (Z1 + HIDDEN * PAIRS)
#define D2 (H1 + HIDDEN * PAIRS)
#define LOCATION (D2 + HIDDEN * PAIRS)
#define SCORE (LOCATION + IN * PAIRS)
#define BY_KEY (SCORE + PAIRS)
#define SCRATCH ((3 * HIDDEN + IN + 1) * PAIRS + HIDDEN * WHOLE(n))

#define EACH_VECTOR(count) for (long at = 0; at < count; at += LANES)

/* Where things are, for example b of head m. */
struct example {
    long n, queries, keys;
    const float *query, *key, *location;
    long pairs, locations; /* of a head, and from one number of a location to the next */
};

static struct example find(long m, long b, long batch, long g, long n, long shared,
                           const long *counts, const float *query, const float *key,
                           const float *location)
{
    long pairs = g * n;
    return (struct example){
        .n = n,
        .queries = counts ? counts[b] : g,
        .keys = counts ? counts[b] : n,
        .query = query + (m * batch + b) * g * HIDDEN,
        .key = key + (m * batch + b) * n * HIDDEN,
        .location = location + ((shared ? 0 : m) * IN * batch + b) * pairs,
        .pairs = pairs,
        .locations = batch * pairs,
    };
}

static long queries_at_once(const struct example *e)
{
    return e->keys >= MOST_PAIRS ? 1 : MOST_PAIRS / (e->keys > 0 ? e->keys : 1);
}

/* Rows of some queries, as far as there are keys, put one after the other. What is beyond the last
   key, the next row overwrites. */
static inline void pack(const struct example *e, long first, long last, const float *from,
                        float *to)
{
    for (long i = first; i < last; i++, to += e->keys)
        EACH_VECTOR(e->keys) {
            vector row = load_some(from + i * e->n + at, e->keys - at);
            __builtin_memcpy(to + at, &row, sizeof(vector));
        }
}

/* query[i] + key[j], and the locations */
static inline void load_pairs(const struct example *e, long first, long last, float *own)
{
    long n = e->n;
    EACH_VECTOR(e->keys)
        EACH(HIDDEN) {
            vector key = load_some(e->key + o * n + at, e->keys - at);
            float *to = Z1 + o * PAIRS + at;
            for (long i = first; i < last; i++, to += e->keys) {
                /* Not beyond the last key, where the next row is already. */
                vector sum = key + e->query[i * HIDDEN + o];
                store_some(sum, to, e->keys - at < LANES ? e->keys - at : LANES);
            }
        }
    for (int k = 0; k < IN; k++)
        pack(e, first, last, e->location + k * e->locations, LOCATION + k * PAIRS);
}

long scratch_size(long n)
{
    return SCRATCH;
}

static inline void load_block(const struct head *p, const float *own, long n, long at, long count,
                              struct block *f)
{
    EACH(IN) f->x[o] = load_some(LOCATION + o * PAIRS + at, count);
    EACH(HIDDEN) f->z1[o] = load_some(Z1 + o * PAIRS + at, count);
    LAYER(IN, HIDDEN, p->w1, f->z1[o], f->x, f->z1);
}

static inline void store_block(const vector *from, long n, int rows, float *to)
{
    EACH(rows) __builtin_memcpy(to + o * PAIRS, &from[o], sizeof(vector));
}

#define EACH_PART(tasks)                                                       \
    _Pragma("omp parallel for schedule(dynamic) num_threads(threads)")         \
    for (long task = 0; task < tasks; task++)

#define EACH_EXAMPLE                                                           \
    for (long b = number * part; b < (number + 1) * part && b < batch; b++)

#define EACH_CHUNK                                                             \
    for (long step = queries_at_once(&e), first = 0, last;                     \
         last = first + step < e.queries ? first + step : e.queries, first < e.queries; \
         first += step)

void value(long heads, long batch, long g, long n, long shared, long part, long threads,
           const long *counts, const float *query, const float *key, const float *location,
           const struct head *parameters, float *scratch, float *out)
{
    EACH_PART((batch + part - 1) / part * heads) {
        long number = task / heads, m = task % heads;
        const struct head *p = &parameters[m];
        float *own = scratch + omp_get_thread_num() * scratch_size(n);
        EACH_EXAMPLE {
            struct example e = find(m, b, batch, g, n, shared, counts, query, key, location);
            EACH_CHUNK {
                long pairs = (last - first) * e.keys;
                load_pairs(&e, first, last, own);
                EACH_VECTOR(pairs) {
                    struct block f;
                    load_block(p, own, n, at, pairs - at, &f);
                    activate(HIDDEN, f.z1, f.h1);
                    LAYER(HIDDEN, HIDDEN, p->w2, p->b2[o], f.h1, f.z2);
                    activate(HIDDEN, f.z2, f.h2);
                    LAYER(HIDDEN, 1, p->w3, p->b3[o], f.h2, f.z3);
                    activate(1, f.z3, f.h3);
                    store_block(f.h3, n, 1, SCORE + at);
                }
                for (long i = first; i < last; i++)
                    __builtin_memcpy(out + (m * batch + b) * e.pairs + i * n,
                                     SCORE + (i - first) * e.keys, e.keys * sizeof(float));
            }
        }
    }
}

static inline void activate_with_slope(int rows, vector *z, vector *h, vector *slope)
{
    EACH(rows) {
        vector s = sigmoid(z[o]);
        h[o] = z[o] * s;
        slope[o] = swish_slope(z[o], s);
    }
}

/* weight[i][o] += x[i]·d[o], for rows of pairs: sums stay in registers for all of them. */
#define ADD_PRODUCTS_OF_ROWS(inputs, x, d, weight)                                        \
    for (int i = 0; i < inputs; i++) {                                                    \
        vector sum[HIDDEN];                                                               \
        UNROLLED EACH(HIDDEN) sum[o] = weight[i][o];                                      \
        EACH_VECTOR(pairs) {                                                              \
            vector factor = *(const vector *)(x + i * PAIRS + at);                        \
            UNROLLED EACH(HIDDEN) sum[o] += factor * *(const vector *)(d + o * PAIRS + at); \
        }                                                                                 \
        UNROLLED EACH(HIDDEN) weight[i][o] = sum[o];                                      \
    }

/* The gradients by what is added to the first layer of pairs, from Z1, where they are. */
static inline void sum_pairs(const struct example *e, long first, long last, float *own,
                             float *by_query)
{
    long n = e->n;
    EACH(HIDDEN)
        for (long i = first; i < last; i++) {
            vector sum = {0};
            EACH_VECTOR(e->keys) {
                const float *row = Z1 + o * PAIRS + (i - first) * e->keys;
                vector term = load_some(row + at, e->keys - at);
                *(vector *)(BY_KEY + o * WHOLE(n) + at) += term;
                sum += term;
            }
            by_query[i * HIDDEN + o] = sum_of_lanes(sum);
        }
}

/* gradient: by out. by_query, by_key, by_location: zeros, the last one may be null; by_parameters:
   (parts, heads), to be summed over the parts. */
void gradient(long heads, long batch, long g, long n, long shared, long part, long threads,
              const long *counts, const float *query, const float *key, const float *location,
              const struct head *parameters, const float *gradient, float *scratch,
              float *by_query, float *by_key, float *by_location, struct head *by_parameters)
{
    /* Heads that add to the same by_location are done by one thread. */
    long together = by_location && shared ? heads : 1;
    EACH_PART((batch + part - 1) / part * heads / together)
        for (long h = task * together; h < (task + 1) * together; h++) {
            long number = h / heads, m = h % heads;
            const struct head *p = &parameters[m];
            float *own = scratch + omp_get_thread_num() * scratch_size(n);
            struct sums sums = {0};
            EACH_EXAMPLE {
                struct example e = find(m, b, batch, g, n, shared, counts, query, key, location);
                float *to = by_key + (e.key - key);
                __builtin_memset(BY_KEY, 0, HIDDEN * WHOLE(n) * sizeof(float));
                EACH_CHUNK {
                    long pairs = (last - first) * e.keys;
                    load_pairs(&e, first, last, own);
                    pack(&e, first, last, gradient + (m * batch + b) * e.pairs, SCORE);
                    EACH_VECTOR(pairs) {
                        struct block f, d;
                        struct derivatives s;
                        load_block(p, own, n, at, pairs - at, &f);
                        activate_with_slope(HIDDEN, f.z1, f.h1, s.slope1);
                        LAYER(HIDDEN, HIDDEN, p->w2, p->b2[o], f.h1, f.z2);
                        activate_with_slope(HIDDEN, f.z2, f.h2, s.slope2);
                        LAYER(HIDDEN, 1, p->w3, p->b3[o], f.h2, f.z3);
                        activate_with_slope(1, f.z3, f.h3, s.slope3);
                        d.h3[0] = load_some(SCORE + at, pairs - at);
                        multiply(1, s.slope3, d.h3, d.z3);
                        TRANSPOSED(HIDDEN, 1, p->w3, d.z3, d.h2);
                        multiply(HIDDEN, s.slope2, d.h2, d.z2);
                        TRANSPOSED(HIDDEN, HIDDEN, p->w2, d.z2, d.h1);
                        multiply(HIDDEN, s.slope1, d.h1, d.z1);
                        store_block(f.x, n, IN, LOCATION + at); /* with zeros at the end */
                        store_block(f.h1, n, HIDDEN, H1 + at);
                        store_block(d.z2, n, HIDDEN, D2 + at);
                        store_block(d.z1, n, HIDDEN, Z1 + at);
                        ADD_PRODUCTS(HIDDEN, 1, f.h2, d.z3, sums.w3)
                        ADD_ROWS(HIDDEN, d.z2, sums.b2)
                        ADD_ROWS(1, d.z3, sums.b3)
                    }
                    ADD_PRODUCTS_OF_ROWS(IN, LOCATION, Z1, sums.w1)
                    ADD_PRODUCTS_OF_ROWS(HIDDEN, H1, D2, sums.w2)
                    sum_pairs(&e, first, last, own, by_query + (e.query - query));
                    if (by_location) {
                        float *into = by_location + (e.location - location);
                        EACH_VECTOR(pairs) {
                            vector d[HIDDEN], by_x[IN];
                            EACH(HIDDEN) d[o] = *(const vector *)(Z1 + o * PAIRS + at);
                            TRANSPOSED(IN, HIDDEN, p->w1, d, by_x);
                            store_block(by_x, n, IN, LOCATION + at);
                        }
                        for (int k = 0; k < IN; k++)
                            for (long i = first; i < last; i++)
                                for (long j = 0; j < e.keys; j++)
                                    into[k * e.locations + i * n + j] +=
                                        LOCATION[k * PAIRS + (i - first) * e.keys + j];
                    }
                }
                EACH(HIDDEN) __builtin_memcpy(to + o * n, BY_KEY + o * WHOLE(n),
                                              e.keys * sizeof(float));
            }
            total(&sums, &by_parameters[h]);
        }
}
