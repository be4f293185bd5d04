/* Products of small matrices whose rows are machine vectors of numbers.

   A library packs matrices before it multiplies and spreads each product over all threads. Here
   matrices are small enough to stay in the nearest caches, and a thread multiplies alone.

   Rows have a multiple of LEAST_COLUMNS numbers, which is one of 16. */

/* A tile of the result, TILE_ROWS × TILE_VECTORS machine vectors, is kept in registers. */
#if defined(__AVX512F__)
#define TILE_LANES 16
#define ROW_VECTORS (LEAST_COLUMNS / TILE_LANES)
#if ROW_VECTORS % 5 == 0
#define TILE_VECTORS 5
#define TILE_ROWS 5
#elif ROW_VECTORS % 6 == 0
#define TILE_VECTORS 6
#define TILE_ROWS 4
#elif ROW_VECTORS % 4 == 0
#define TILE_VECTORS 4
#define TILE_ROWS 6
#elif ROW_VECTORS % 7 == 0
#define TILE_VECTORS 7
#define TILE_ROWS 3
#elif ROW_VECTORS % 3 == 0
#define TILE_VECTORS 3
#define TILE_ROWS 8
#elif ROW_VECTORS % 2 == 0
#define TILE_VECTORS 2
#define TILE_ROWS 8
#else
#define TILE_VECTORS 1
#define TILE_ROWS 8
#endif
#elif defined(__AVX__)
#define TILE_LANES 8
#define TILE_VECTORS 2
#define TILE_ROWS 6
#else
#define TILE_LANES 4
#define TILE_VECTORS 4
#define TILE_ROWS 6
#endif

#define TILE_COLUMNS (TILE_VECTORS * TILE_LANES)
/* Of the second factor, so many rows of a tile's width fit into the nearest cache of 48 KB, and
   leave some of it for the others. */
#define INNER_BLOCK (9600 / TILE_COLUMNS)

/* Anywhere in memory, not only at multiples of its size. */
typedef float lanes __attribute__((vector_size(4 * TILE_LANES), may_alias, aligned(4)));

/* A matrix: number (i, j) is at[i * row + j * column]. */
struct matrix {
    const float *at;
    long row, column;
};

static inline __attribute__((always_inline)) void product_tile(
    int rows, long inner, struct matrix a, const float *b, long b_row, const float *initial,
    long initial_row, float *c, long c_row)
{
    lanes sum[TILE_ROWS][TILE_VECTORS];
    _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++)
        _Pragma("GCC unroll 8") for (int v = 0; v < TILE_VECTORS; v++)
            sum[i][v] = initial ? *(const lanes *)(initial + i * initial_row + v * TILE_LANES)
                                : (lanes){0};
    for (long k = 0; k < inner; k++) {
        const lanes *b_k = (const lanes *)(b + k * b_row);
        const float *a_k = a.at + k * a.column;
        _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++)
            _Pragma("GCC unroll 8") for (int v = 0; v < TILE_VECTORS; v++)
                sum[i][v] += a_k[i * a.row] * b_k[v];
    }
    _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++)
        _Pragma("GCC unroll 8") for (int v = 0; v < TILE_VECTORS; v++)
            *(lanes *)(c + i * c_row + v * TILE_LANES) = sum[i][v];
}

/* Rows that are multiples of so many numbers apart drive each other out of the nearest cache. */
#define CACHE_PERIOD 512

/* C = initial + A·B. Rows of B are contiguous; `initial` has rows of that length too, or, with
   initial_row = 0, is one row for all; null stands for zeros. It may be C itself. */
static __attribute__((noinline)) void product(
    long rows, long inner, long columns, struct matrix a, const float *b, long b_row,
    const float *initial, long initial_row, float *c, long c_row)
{
    float block[INNER_BLOCK * TILE_COLUMNS];
    long blocks = (inner + INNER_BLOCK - 1) / INNER_BLOCK;
    long deepest = blocks ? (inner + blocks - 1) / blocks : 1; /* of blocks of about equal size */
    for (long j = 0; j < columns; j += TILE_COLUMNS)
        for (long k = 0; k < inner; k += deepest) {
            long depth = inner - k < deepest ? inner - k : deepest;
            const float *b_block = b + k * b_row + j;
            long block_row = b_row;
            if (b_row % CACHE_PERIOD == 0) {
                block_row = TILE_COLUMNS;
                for (long r = 0; r < depth; r++)
                    __builtin_memcpy(block + r * TILE_COLUMNS, b_block + r * b_row,
                                     TILE_COLUMNS * sizeof(float));
                b_block = block;
            }
            const float *from = k ? c : initial;
            long from_row = k ? c_row : initial_row;
            for (long i = 0; i < rows;) {
                int is_whole = rows - i >= TILE_ROWS;
                struct matrix a_tile = {a.at + i * a.row + k * a.column, a.row, a.column};
                const float *from_tile = from ? from + i * from_row + j : from;
                float *c_tile = c + i * c_row + j;
                if (is_whole)
                    product_tile(TILE_ROWS, depth, a_tile, b_block, block_row, from_tile,
                                 from_row, c_tile, c_row);
                else
                    product_tile(1, depth, a_tile, b_block, block_row, from_tile, from_row,
                                 c_tile, c_row);
                i += is_whole ? TILE_ROWS : 1;
            }
        }
}

/* y = bias + xB, or without a bias if it is null; B is (inner, columns) */
static void map(long rows, long inner, long columns, const void *x, const void *b,
                const float *bias, void *y)
{
    struct matrix a = {x, inner, 1};
    product(rows, inner, columns, a, b, columns, bias, 0, y, columns);
}

/* y += xB */
static void add_map(long rows, long inner, long columns, const void *x, const void *b, void *y)
{
    struct matrix a = {x, inner, 1};
    product(rows, inner, columns, a, b, columns, y, columns, y, columns);
}

/* The gradient of a linear map from `columns` to `outputs` numbers: weight += g'x */
static void add_weight_gradient(long rows, long outputs, long columns, const void *g,
                                const void *x, void *weight)
{
    struct matrix a = {g, 1, outputs};
    product(outputs, rows, columns, a, x, columns, weight, columns, weight, columns);
}
