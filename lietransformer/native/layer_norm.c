/* Layer normalisation of rows of WIDTH numbers: value, gradient, tangent, gradient of the tangent.

   y = scale·n + shift with n = (x - mean) / sigma. Its derivative by x is the symmetric map
   project(v) = (v - mean(v) - n·mean(n·v)) / sigma. */

typedef float row[WIDTH];

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

static inline void project(const float *restrict v, const float *restrict n, float inverse,
                           float *restrict out)
{
    float m = mean(v), c = mean_product(v, n);
    for (int i = 0; i < WIDTH; i++) out[i] = (v[i] - m - n[i] * c) * inverse;
}

#define EACH_ROW _Pragma("omp parallel for schedule(static) num_threads(threads)") \
    for (long r = 0; r < rows; r++)

/* n and inverse, 1 / sigma of each row, are kept for the other passes */
void value(long rows, long threads, float epsilon, const row *x, const float *scale,
           const float *shift, row *y, row *n, float *inverse)
{
    EACH_ROW {
        row c;
        float m = mean(x[r]);
        for (int i = 0; i < WIDTH; i++) c[i] = x[r][i] - m;
        float one_by_sigma = 1.0f / __builtin_sqrtf(mean_product(c, c) + epsilon);
        inverse[r] = one_by_sigma;
        for (int i = 0; i < WIDTH; i++) {
            n[r][i] = c[i] * one_by_sigma;
            y[r][i] = n[r][i] * scale[i] + shift[i];
        }
    }
}

void gradient(long rows, long threads, const row *n, const float *inverse, const float *scale,
              const row *g, row *out)
{
    EACH_ROW {
        row h;
        for (int i = 0; i < WIDTH; i++) h[i] = scale[i] * g[r][i];
        project(h, n[r], inverse[r], out[r]);
    }
}

void tangent(long rows, long threads, const row *n, const float *inverse, const float *scale,
             const row *t, row *out)
{
    EACH_ROW {
        project(t[r], n[r], inverse[r], out[r]);
        for (int i = 0; i < WIDTH; i++) out[r][i] *= scale[i];
    }
}

/* The gradient of b·y + g·dy(t) by x, scale and shift, where dy(t) is the tangent of y for the
   tangent t of x. sums: for each part of the rows those of scale, then those of shift. */
void second(long rows, long part, long threads, const row *n, const float *inverse,
            const float *scale, const row *t, const row *g, const row *b, row *out, row *sums)
{
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (long first = 0; first < rows; first += part) {
        long last = first + part < rows ? first + part : rows;
        row of_scale = {0}, of_shift = {0};
        for (long r = first; r < last; r++) {
            row h, u;
            float inv = inverse[r];
            for (int i = 0; i < WIDTH; i++) h[i] = scale[i] * g[r][i];
            float mean_t = mean(t[r]), mean_h = mean(h);
            float tn = mean_product(t[r], n[r]), hn = mean_product(h, n[r]);
            float bend = (mean_product(h, t[r]) - mean_h * mean_t - hn * tn) * inv * inv;
            for (int i = 0; i < WIDTH; i++)
                u[i] = scale[i] * b[r][i] - (tn * h[i] + hn * t[r][i]) * inv;
            project(u, n[r], inv, out[r]);
            for (int i = 0; i < WIDTH; i++) {
                float dn = (t[r][i] - mean_t - n[r][i] * tn) * inv;
                out[r][i] -= bend * n[r][i];
                of_scale[i] += b[r][i] * n[r][i] + g[r][i] * dn;
                of_shift[i] += b[r][i];
            }
        }
        for (int i = 0; i < WIDTH; i++) {
            sums[first / part * 2][i] = of_scale[i];
            sums[first / part * 2 + 1][i] = of_shift[i];
        }
    }
}
