/* Examples are computed chunk by chunk, and the memory that takes. */

#include <omp.h>

/* Take `count` items of an array's type from the memory at `base`; `at` is how far it is used. */
#define TAKE(array, count)                                                        \
    do {                                                                          \
        (array) = (void *)(base + at);                                            \
        at += ((count) * (long)(sizeof *(array) / sizeof(float)) + 15) / 16 * 16; \
    } while (0)

#define EACH_CHUNK                                                            \
    _Pragma("omp parallel for schedule(static, 1) num_threads(threads)")      \
    for (long first = 0; first < batch; first += chunk)
#define EXAMPLES (batch - first < chunk ? batch - first : chunk)
#define THIS_THREADS(array, size) ((array) + omp_get_thread_num() * (size))
#define THIS_CHUNKS(array, size) ((array) + first / chunk * (size))

/* Layers see positions through numbers of the locations of pairs of elements. Many pairs have the
   same location: of each layer and head, such numbers are (batch, columns), with the column of
   each pair. `stride` is the distance between two heads. */
struct locations {
    long columns, stride;
    const long *column;
};
#define WHERE {columns, batch * columns, column}
