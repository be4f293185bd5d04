/* A perceptron of three layers with swish after each, for every attention head, on columns.

   PyTorch passes over memory once for each product, sum and activation. Here a block of columns
   goes through all layers while it is in the nearest cache.

   Arrays are contiguous: x (IN, columns), out (heads, OUT, columns), the Jacobian of out by x
   (heads, OUT, IN, columns). */

#include "head_mlp.h"

/* The columns in parts of a size that does not depend on the number of threads, so that sums do
   not either. The threads are those of PyTorch: both use the OpenMP library that is loaded. */

#define EACH_PART                                                              \
    _Pragma("omp parallel for schedule(dynamic) num_threads(threads)")         \
    for (long first = 0; first < columns; first += part)

#define EACH_BLOCK                                                             \
    for (long at = first, last = first + part < columns ? first + part : columns, count; \
         count = last - at < LANES ? last - at : LANES, at < last; at += LANES)

#define OF_HEAD(array) ((array) + m * OUT * columns)

void value(long heads, long columns, long part, long threads, const float *x,
           const struct head *parameters, float *out)
{
    EACH_PART {
        struct block f;
        for (long m = 0; m < heads; m++)
            EACH_BLOCK {
                load(x, columns, at, count, IN, f.x);
                values(&parameters[m], &f);
                store(f.h3, columns, at, count, OUT, OF_HEAD(out));
            }
    }
}

/* by_parameters: (parts, heads), to be summed over the parts. by_x: zeros. Either may be null. */
void gradient(long heads, long columns, long part, long threads, const float *x,
              const struct head *parameters, const float *g, float *by_x,
              struct head *by_parameters)
{
    EACH_PART {
        struct block f, d;
        struct derivatives s;
        for (long m = 0; m < heads; m++) {
            struct sums sums = {0};
            EACH_BLOCK {
                load(x, columns, at, count, IN, f.x);
                values_and_derivatives(&parameters[m], &f, &s);
                load(OF_HEAD(g), columns, at, count, OUT, d.h3);
                gradients(&parameters[m], &s, &d);
                if (by_x) add(d.x, columns, at, count, IN, by_x);
                if (by_parameters) add_parameter_gradients(&f, &d, &sums);
            }
            if (by_parameters) total(&sums, &by_parameters[first / part * heads + m]);
        }
    }
}

/* From it, gradients by x and tangents cost next to nothing. */
void value_and_jacobian(long heads, long columns, long part, long threads, const float *x,
                        const struct head *parameters, float *out, float *jacobian)
{
    EACH_PART {
        struct block f, d;
        struct derivatives s;
        for (long m = 0; m < heads; m++)
            EACH_BLOCK {
                float *to = jacobian + m * OUT * IN * columns;
                load(x, columns, at, count, IN, f.x);
                values_and_derivatives(&parameters[m], &f, &s);
                store(f.h3, columns, at, count, OUT, OF_HEAD(out));
#if OUT < IN
                for (int k = 0; k < OUT; k++) {
                    EACH(OUT) d.h3[o] = (float)(o == k) - (vector){0};
                    gradients(&parameters[m], &s, &d);
                    store(d.x, columns, at, count, IN, to + k * IN * columns);
                }
#else
                for (int k = 0; k < IN; k++) {
                    EACH(IN) d.x[o] = (float)(o == k) - (vector){0};
                    tangents(&parameters[m], &s, &d);
                    store(d.h3, IN * columns, at, count, OUT, to + k * columns);
                }
#endif
            }
    }
}

#define EACH_OUTPUT for (long r = 0; r < heads * OUT; r++)
#define EACH_INPUT for (long i = 0; i < IN; i++)
#define EACH_COLUMN                                                                        \
    for (long c = first, last = first + part < columns ? first + part : columns; c < last; c++)

/* by_x, from zeros: the gradient of g·value by x */
void pull_back(long heads, long columns, long part, long threads, const float *jacobian,
               const float *g, float *by_x)
{
    EACH_PART
        EACH_OUTPUT EACH_INPUT EACH_COLUMN
            by_x[i * columns + c] += jacobian[(r * IN + i) * columns + c] * g[r * columns + c];
}

/* t: the tangent of x; out, from zeros: that of the value */
void push_forward(long heads, long columns, long part, long threads, const float *jacobian,
                  const float *t, float *out)
{
    EACH_PART
        EACH_OUTPUT EACH_INPUT EACH_COLUMN
            out[r * columns + c] += jacobian[(r * IN + i) * columns + c] * t[i * columns + c];
}

/* The gradient of b·value + g·tangent by x and by the parameters. */
void second(long heads, long columns, long part, long threads, const float *x,
            const struct head *parameters, const float *t, const float *g, const float *b,
            float *by_x, struct head *by_parameters)
{
    EACH_PART {
        struct block f, dt, d, a;
        struct derivatives s;
        for (long m = 0; m < heads; m++) {
            struct sums sums = {0};
            EACH_BLOCK {
                load(x, columns, at, count, IN, f.x);
                load(t, columns, at, count, IN, dt.x);
                load(OF_HEAD(g), columns, at, count, OUT, d.h3);
                load(OF_HEAD(b), columns, at, count, OUT, a.h3);
                values_and_derivatives(&parameters[m], &f, &s);
                tangents(&parameters[m], &s, &dt);
                gradients(&parameters[m], &s, &d);
                second_gradients(&parameters[m], &s, &dt, &d, &a);
                add(a.x, columns, at, count, IN, by_x);
                add_second_parameter_gradients(&f, &a, &dt, &d, &sums);
            }
            total(&sums, &by_parameters[first / part * heads + m]);
        }
    }
}
