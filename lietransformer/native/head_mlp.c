/* A perceptron of three layers with swish after each, for every attention head, on columns.

   PyTorch passes over memory once for each product, sum and activation. Here a block of columns
   goes through all layers while it is in the nearest cache. IN, HIDDEN and OUT are given by the
   compiler's command line, so that all loops over widths are unrolled.

   Arrays are contiguous: x (IN, columns), out (heads, OUT, columns). The parameters of a head
   follow each other as in `struct head`. */

#define BLOCK 64
#define LANES 16

typedef float row[BLOCK];

struct head {
    float w1[IN][HIDDEN], b1[HIDDEN];
    float w2[HIDDEN][HIDDEN], b2[HIDDEN];
    float w3[HIDDEN][OUT], b3[OUT];
};

/* Sums over columns are kept apart by lane until the end: one vector operation a term. */
struct sums {
    float w1[IN][HIDDEN][LANES], b1[HIDDEN][LANES];
    float w2[HIDDEN][HIDDEN][LANES], b2[HIDDEN][LANES];
    float w3[HIDDEN][OUT][LANES], b3[OUT][LANES];
};

/* e^x to about one unit in the last place: 2^n·e^r with |r| <= ln(2)/2, e^r by its series. */
static inline float exponential(float x)
{
    x = x > -87.0f ? x : -87.0f;
    x = x < 88.0f ? x : 88.0f;
    float n = __builtin_rintf(x * 1.44269504f);
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float e = 1.0f + r * (1.0f + r * (0.5f + r * (1.66666667e-1f + r * (4.16666667e-2f
            + r * (8.33333333e-3f + r * (1.38888889e-3f + r * 1.98412698e-4f))))));
    union { int bits; float value; } scale = { .bits = ((int)n + 127) << 23 };
    return e * scale.value;
}

/* y -> swish(y), and the derivative of swish there */
static inline void swish(row y, row slope)
{
    for (int c = 0; c < BLOCK; c++) {
        float s = 1.0f / (1.0f + exponential(-y[c]));
        float h = y[c] * s;
        slope[c] = s + h * (1.0f - s);
        y[c] = h;
    }
}

#define LAYER(inputs, outputs, x, weight, bias, y)                      \
    for (int o = 0; o < outputs; o++) {                                 \
        for (int c = 0; c < BLOCK; c++) y[o][c] = bias[o];              \
        for (int i = 0; i < inputs; i++)                                \
            for (int c = 0; c < BLOCK; c++) y[o][c] += weight[i][o] * x[i][c]; \
    }

#define ADD_PRODUCTS(inputs, outputs, x, d, weight, bias)               \
    for (int o = 0; o < outputs; o++) {                                 \
        for (int i = 0; i < inputs; i++)                                \
            for (int v = 0; v < BLOCK; v += LANES)                      \
                for (int l = 0; l < LANES; l++)                         \
                    weight[i][o][l] += x[i][v + l] * d[o][v + l];       \
        for (int v = 0; v < BLOCK; v += LANES)                          \
            for (int l = 0; l < LANES; l++) bias[o][l] += d[o][v + l];  \
    }

#define PULL_BACK(inputs, outputs, weight, d, slope, e)                 \
    for (int i = 0; i < inputs; i++) {                                  \
        for (int c = 0; c < BLOCK; c++) e[i][c] = 0;                    \
        for (int o = 0; o < outputs; o++)                               \
            for (int c = 0; c < BLOCK; c++) e[i][c] += weight[i][o] * d[o][c]; \
        for (int c = 0; c < BLOCK; c++) e[i][c] *= slope[i][c];         \
    }

static void load(const float *from, long columns, long at, int count, int rows, row *to)
{
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < BLOCK; c++)
            to[i][c] = c < count ? from[i * columns + at + c] : 0.0f;
}

static void forward_part(long heads, long columns, long first, long last,
                         const float *x, const struct head *parameters, float *out)
{
    row x0[IN], h1[HIDDEN], h2[HIDDEN], h3[OUT], unused;
    for (long m = 0; m < heads; m++) {
        struct head p = parameters[m];
        for (long at = first; at < last; at += BLOCK) {
            int count = last - at < BLOCK ? last - at : BLOCK;
            load(x, columns, at, count, IN, x0);
            LAYER(IN, HIDDEN, x0, p.w1, p.b1, h1)
            for (int o = 0; o < HIDDEN; o++) swish(h1[o], unused);
            LAYER(HIDDEN, HIDDEN, h1, p.w2, p.b2, h2)
            for (int o = 0; o < HIDDEN; o++) swish(h2[o], unused);
            LAYER(HIDDEN, OUT, h2, p.w3, p.b3, h3)
            for (int o = 0; o < OUT; o++) {
                swish(h3[o], unused);
                for (int c = 0; c < count; c++) out[(m * OUT + o) * columns + at + c] = h3[o][c];
            }
        }
    }
}

static void backward_part(long heads, long columns, long first, long last,
                          const float *x, const struct head *parameters, const float *g,
                          float *gradient_x, struct head *gradient)
{
    row x0[IN], h1[HIDDEN], h2[HIDDEN], h3[OUT], slope1[HIDDEN], slope2[HIDDEN], slope3[OUT];
    row d3[OUT], d2[HIDDEN], d1[HIDDEN];
    for (long m = 0; m < heads; m++) {
        struct head p = parameters[m];
        struct sums s = {0};
        for (long at = first; at < last; at += BLOCK) {
            int count = last - at < BLOCK ? last - at : BLOCK;
            load(x, columns, at, count, IN, x0);
            LAYER(IN, HIDDEN, x0, p.w1, p.b1, h1)
            for (int o = 0; o < HIDDEN; o++) swish(h1[o], slope1[o]);
            LAYER(HIDDEN, HIDDEN, h1, p.w2, p.b2, h2)
            for (int o = 0; o < HIDDEN; o++) swish(h2[o], slope2[o]);
            LAYER(HIDDEN, OUT, h2, p.w3, p.b3, h3)
            load(g + m * OUT * columns, columns, at, count, OUT, d3);
            for (int o = 0; o < OUT; o++) {
                swish(h3[o], slope3[o]);
                for (int c = 0; c < BLOCK; c++) d3[o][c] *= slope3[o][c];
            }
            ADD_PRODUCTS(HIDDEN, OUT, h2, d3, s.w3, s.b3)
            PULL_BACK(HIDDEN, OUT, p.w3, d3, slope2, d2)
            ADD_PRODUCTS(HIDDEN, HIDDEN, h1, d2, s.w2, s.b2)
            PULL_BACK(HIDDEN, HIDDEN, p.w2, d2, slope1, d1)
            ADD_PRODUCTS(IN, HIDDEN, x0, d1, s.w1, s.b1)
            if (gradient_x)
                for (int i = 0; i < IN; i++)
                    for (int o = 0; o < HIDDEN; o++)
                        for (int c = 0; c < count; c++)
                            gradient_x[i * columns + at + c] += p.w1[i][o] * d1[o][c];
        }
        float *total = (float *)&gradient[m], *terms = (float *)&s;
        for (unsigned long k = 0; k < sizeof(struct head) / sizeof(float); k++) {
            total[k] = 0;
            for (int l = 0; l < LANES; l++) total[k] += terms[k * LANES + l];
        }
    }
}

/* The columns in parts of a size that does not depend on the number of threads, so that sums do
   not either. The threads are those of PyTorch: both use the OpenMP library that is loaded. */

void forward(long heads, long columns, long part, int threads,
             const float *x, const struct head *parameters, float *out)
{
    #pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (long first = 0; first < columns; first += part)
        forward_part(heads, columns, first, first + part < columns ? first + part : columns,
                     x, parameters, out);
}

/* gradient: (parts, heads), to be summed over the parts; gradient_x: zeros, or null */
void backward(long heads, long columns, long part, int threads,
              const float *x, const struct head *parameters, const float *g,
              float *gradient_x, struct head *gradient)
{
    #pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (long first = 0; first < columns; first += part)
        backward_part(heads, columns, first, first + part < columns ? first + part : columns,
                      x, parameters, g, gradient_x, gradient + first / part * heads);
}
