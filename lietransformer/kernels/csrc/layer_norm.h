/* Layer normalisation of rows of WIDTH numbers: value, gradient, tangent, gradient of the tangent.

   y = scale·n + shift with n = (x - mean) / sigma. Its derivative by x is the symmetric map
   project(v) = (v - mean(v) - n·mean(n·v)) / sigma. Rows are ROW_LENGTH apart; what fills them up
   is zero, and stays so. */

struct norm {
    float scale[ROW_LENGTH], shift[ROW_LENGTH];
};

static inline float mean(const float *restrict v)
{
    float sum = 0;
    #pragma omp simd reduction(+ : sum)
    for (int i = 0; i < WIDTH; i++) sum += v[i];
    return sum / WIDTH;
}

static inline float mean_product(const float *restrict v, const float *restrict w)
{
    float sum = 0;
    #pragma omp simd reduction(+ : sum)
    for (int i = 0; i < WIDTH; i++) sum += v[i] * w[i];
    return sum / WIDTH;
}

#define EACH_NUMBER for (int i = 0; i < WIDTH; i++)

/* n, and inverse = 1 / sigma of each row */
static void normalise(long rows, const row *x, row *n, float *inverse)
{
    for (long r = 0; r < rows; r++) {
        float m = mean(x[r]);
        EACH_NUMBER n[r][i] = x[r][i] - m;
        inverse[r] = 1.0f / __builtin_sqrtf(mean_product(n[r], n[r]) + EPSILON);
        EACH_NUMBER n[r][i] *= inverse[r];
        for (int i = WIDTH; i < ROW_LENGTH; i++) n[r][i] = 0;
    }
}

/* y, from n */
static void scale_and_shift(long rows, const struct norm *p, const row *n, row *y)
{
    for (long r = 0; r < rows; r++)
        for (int i = 0; i < ROW_LENGTH; i++) y[r][i] = n[r][i] * p->scale[i] + p->shift[i];
}

/* out += the gradient by x from that by y */
static void add_norm_gradient(long rows, const struct norm *p, const row *n, const float *inverse,
                              const row *g, row *out)
{
    for (long r = 0; r < rows; r++) {
        row h;
        EACH_NUMBER h[i] = p->scale[i] * g[r][i];
        float m = mean(h), c = mean_product(h, n[r]);
        EACH_NUMBER out[r][i] += (h[i] - m - n[r][i] * c) * inverse[r];
    }
}

/* The tangent of y from that of x */
static void norm_tangent(long rows, const struct norm *p, const row *n, const float *inverse,
                         const row *t, row *out)
{
    for (long r = 0; r < rows; r++) {
        float m = mean(t[r]), c = mean_product(t[r], n[r]);
        EACH_NUMBER out[r][i] = (t[r][i] - m - n[r][i] * c) * inverse[r] * p->scale[i];
        for (int i = WIDTH; i < ROW_LENGTH; i++) out[r][i] = 0;
    }
}

/* The gradient of b·y + g·dy(t) by x, scale and shift, added to `out` and `sums`; dy(t) is the
   tangent of y for the tangent t of x. */
static void add_norm_second(long rows, const struct norm *p, const row *n, const float *inverse,
                            const row *t, const row *g, const row *b, row *out, struct norm *sums)
{
    for (long r = 0; r < rows; r++) {
        row h, u;
        float inv = inverse[r];
        EACH_NUMBER h[i] = p->scale[i] * g[r][i];
        float mean_t = mean(t[r]), mean_h = mean(h);
        float tn = mean_product(t[r], n[r]), hn = mean_product(h, n[r]);
        float bend = (mean_product(h, t[r]) - mean_h * mean_t - hn * tn) * inv * inv;
        EACH_NUMBER u[i] = p->scale[i] * b[r][i] - (tn * h[i] + hn * t[r][i]) * inv;
        float mean_u = mean(u), un = mean_product(u, n[r]);
        EACH_NUMBER {
            float dn = (t[r][i] - mean_t - n[r][i] * tn) * inv;
            out[r][i] += (u[i] - mean_u - n[r][i] * un) * inv - bend * n[r][i];
            sums->scale[i] += b[r][i] * n[r][i] + g[r][i] * dn;
            sums->shift[i] += b[r][i];
        }
    }
}
