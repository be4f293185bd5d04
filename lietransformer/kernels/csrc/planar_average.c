/* out(g) = sum over g' of MLP(log(g^-1 g'))·value(g'), for elements of SE(2), in double precision.

   The MLP has three layers with swish after each, its own weights for every head and one output.
   No pair is ever stored: memory is needed for the elements alone, however many pairs there are.
   HIDDEN and VALUES, the numbers that a head's value has, are given by the compiler's command
   line.

   There are `keys` elements, a multiple of LANES·VECTORS; those past the last query are copies that
   have value 0. All arrays are contiguous: elements (5, keys) with the rows x, y, angle,
   cos(angle/2), sin(angle/2); value (heads, VALUES, keys); out (heads, queries, VALUES). */

#define LANES 8
/* So many vectors go through the layers side by side: none has to wait for another. */
#define VECTORS 4
#define LOAD(address) (*(const vector *)(address))
#define UNROLLED _Pragma("GCC unroll 32")

typedef double vector __attribute__((vector_size(64), aligned(8), may_alias));
typedef long integers __attribute__((vector_size(64), may_alias));

struct head {
    double w1[3][HIDDEN], b1[HIDDEN];
    double w2[HIDDEN][HIDDEN], b2[HIDDEN];
    double w3[HIDDEN], b3;
};

static const double pi = 3.14159265358979323846;

static inline vector all(double x) { return x - (vector){0}; }

static inline vector choose(integers condition, vector yes, vector no)
{
    return (vector)((condition & (integers)yes) | (~condition & (integers)no));
}

/* The nearest whole number, for |x| < 2^51: what is below one is lost when this is added. */
#define SHIFT 6755399441055744.0
static inline vector nearest(vector x) { return (x + SHIFT) - SHIFT; }

/* e^x for |x| <= 700: 2^n·e^r with |r| <= ln(2)/2, e^r by its series. */
static inline vector exponential(vector x)
{
    x = choose(x > all(-700), x, all(-700));
    x = choose(x < all(700), x, all(700));
    vector shifted = x * 1.4426950408889634 + SHIFT;
    vector n = shifted - SHIFT;
    vector r = x - n * 0x1.62e42fee00000p-1 - n * 0x1.a39ef35793c76p-33;
    /* In pairs of terms, pairs of those and so on: shorter to wait for than one term at a time. */
    vector r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
    vector low = (1 + r) + r2 * (1.0 / 2 + r * (1.0 / 6));
    vector middle = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    vector high = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    high += r4 * (1.0 / 479001600 + r * (1.0 / 6227020800));
    vector e = low + r4 * middle + r8 * high;
    /* The low bits of `shifted` are n. */
    integers scale = ((integers)shifted << 52) + (integers)all(1);
    return e * (vector)scale;
}

/* 1/x for x > 0 that is not tiny or huge: a guess from the bits, good to an eighth, and three steps
   that each cube its error. Processors divide whole vectors several times slower. */
static inline vector reciprocal(vector x)
{
    vector r = (vector)(0x7FDE6238502484BAL - (integers)x);
    UNROLLED for (int step = 0; step < 3; step++) {
        vector error = 1 - x * r;
        r += r * (error + error * error);
    }
    return r;
}

static inline vector swish(vector x)
{
    return x * reciprocal(1 + exponential(-x));
}

/* a/2·cot(a/2), where cosine and sine of a/2 are given: they do where a is not small. */
static inline vector cotangent_factor(vector a, vector cosine, vector sine)
{
    vector s = a * a;
    vector series = all(-1.0 / 74724249600.0);
    series = series * s - 691.0 / 1307674368000.0;
    series = series * s - 1.0 / 47900160;
    series = series * s - 1.0 / 1209600;
    series = series * s - 1.0 / 30240;
    series = series * s - 1.0 / 720;
    series = series * s - 1.0 / 12;
    series = series * s + 1;
    integers small = s < all(0.25);
    vector quotient = 0.5 * a * cosine / choose(small, all(1), sine);
    return choose(small, series, quotient);
}

#define EACH UNROLLED for (int v = 0; v < VECTORS; v++)

static inline void location(const struct head *p, const vector *x, const vector *y,
                            const vector *angle, vector *out)
{
    vector first[HIDDEN][VECTORS];
    UNROLLED for (int o = 0; o < HIDDEN; o++)
        EACH first[o][v] = swish(p->b1[o] + p->w1[0][o] * x[v] + p->w1[1][o] * y[v]
                                 + p->w1[2][o] * angle[v]);
    EACH out[v] = all(p->b3);
    UNROLLED for (int o = 0; o < HIDDEN; o++) {
        vector z[VECTORS];
        EACH z[v] = all(p->b2[o]);
        UNROLLED for (int i = 0; i < HIDDEN; i++) EACH z[v] += p->w2[i][o] * first[i][v];
        EACH out[v] += p->w3[o] * swish(z[v]);
    }
    EACH out[v] = swish(out[v]);
}

/* log(g^-1 g') for the keys k and following. */
static inline void logarithms(const double *elements, long keys, long q, long k, double margin,
                              vector *x, vector *y, vector *angle)
{
    const double *xs = elements, *ys = xs + keys, *angles = ys + keys;
    const double *cosines = angles + keys, *sines = cosines + keys;
    /* Cosine and sine of the query's own angle, by which differences are turned back. */
    double turn = cosines[q] * cosines[q] - sines[q] * sines[q];
    double lean = 2 * cosines[q] * sines[q];
    EACH {
        long at = k + v * LANES;
        vector dx = LOAD(xs + at) - xs[q], dy = LOAD(ys + at) - ys[q];
        vector tx = turn * dx + lean * dy, ty = turn * dy - lean * dx;
        vector cosine = LOAD(cosines + at), sine = LOAD(sines + at);
        vector half_cosine = cosine * cosines[q] + sine * sines[q];
        vector half_sine = sine * cosines[q] - cosine * sines[q];
        vector a = LOAD(angles + at) - angles[q];
        a -= 2 * pi * nearest(a * (0.5 / pi));
        a = choose(a < all(margin - pi), a + 2 * pi, a);
        /* A whole turn between the angles changes the sign of both, and not the quotient. */
        vector factor = cotangent_factor(a, half_cosine, half_sine), half = 0.5 * a;
        x[v] = factor * tx + half * ty;
        y[v] = factor * ty - half * tx;
        angle[v] = a;
    }
}

static inline const double *row(const double *value, long m, int c, long keys)
{
    return value + (m * VALUES + c) * keys;
}

void average(long heads, long queries, long keys, long threads, double half_turn_margin,
             const double *elements, const struct head *parameters, const double *value,
             double *out)
{
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (long q = 0; q < queries; q++) {
        vector sums[heads][VALUES];
        for (long m = 0; m < heads; m++)
            for (int c = 0; c < VALUES; c++) sums[m][c] = all(0);
        for (long k = 0; k < keys; k += LANES * VECTORS) {
            vector x[VECTORS], y[VECTORS], angle[VECTORS], weight[VECTORS];
            logarithms(elements, keys, q, k, half_turn_margin, x, y, angle);
            for (long m = 0; m < heads; m++) {
                location(&parameters[m], x, y, angle, weight);
                UNROLLED for (int c = 0; c < VALUES; c++)
                    EACH sums[m][c] += weight[v] * LOAD(row(value, m, c, keys) + k + v * LANES);
            }
        }
        for (long m = 0; m < heads; m++)
            for (int c = 0; c < VALUES; c++) {
                double sum = 0;
                for (int l = 0; l < LANES; l++) sum += sums[m][c][l];
                out[(m * queries + q) * VALUES + c] = sum;
            }
    }
}
