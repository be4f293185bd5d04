/* The entry points of a network V, whose layers see positions through numbers of locations.

   Between two matrix products of such a network there is little to compute. Therefore one thread
   takes some examples, a chunk, through all layers: what one operation leaves in the caches, the
   next one finds there, and threads need not wait for each other. Chunks do not depend on the
   number of threads, so neither does any sum.

   A file that includes this has defined
     features, prepared   of an example, what the first layer is given: the features of elements,
                          and what else of them does not depend on positions;
     struct parameters, struct transposes   the weights, and those of maps from inputs to outputs;
     struct stored, struct scratch   what the second pair of passes needs of the first, and what a
                                     chunk needs for a moment, with lay_out_stored and
                                     lay_out_scratch;
     value, gradient, tangent, second   the passes of one chunk. */

/* How many numbers they are. */
long stored_size(long examples)
{
    struct stored s;
    return lay_out_stored(0, examples, &s);
}

long scratch_size(long examples)
{
    struct scratch s;
    return lay_out_scratch(0, examples, &s);
}

/* The gradient of V by the numbers of locations, (layers, numbers, batch, columns).

   stored: stored_size(chunk) for each chunk, or, if it need not be kept, for each thread;
   scratch: scratch_size(chunk) for each thread. */
void first_order(long batch, long chunk, long threads, long columns, const long *column,
                 const struct parameters *p, const struct transposes *w, const features *x0,
                 const prepared *given, const float *location, long keep, float *stored,
                 float *scratch, float *by_location)
{
    EACH_CHUNK {
        struct locations where = WHERE;
        struct stored s;
        struct scratch work;
        long size = stored_size(chunk);
        lay_out_stored(keep ? THIS_CHUNKS(stored, size) : THIS_THREADS(stored, size), chunk, &s);
        lay_out_scratch(THIS_THREADS(scratch, scratch_size(chunk)), chunk, &work);
        value(EXAMPLES, where, p, w, x0 + first, given + first, location + first * columns, &s,
              &work);
        gradient(EXAMPLES, where, p, given + first, &s, &work, by_location + first * columns);
    }
}

/* The gradient of the tangent of V, for the tangent of the numbers of locations.

   Those by the parameters, for each chunk, by x0 and by `given` are added to what is there. */
void second_order(long batch, long chunk, long threads, long columns, const long *column,
                  const struct parameters *p, const struct transposes *w, const prepared *given,
                  float *stored, float *scratch, const float *t_location, float *by_location,
                  struct parameters *sums, features *by_x0, prepared *by_given)
{
    EACH_CHUNK {
        struct locations where = WHERE;
        struct stored s;
        struct scratch work;
        lay_out_stored(THIS_CHUNKS(stored, stored_size(chunk)), chunk, &s);
        lay_out_scratch(THIS_THREADS(scratch, scratch_size(chunk)), chunk, &work);
        tangent(EXAMPLES, where, p, w, given + first, &s, t_location + first * columns, &work);
        second(EXAMPLES, where, p, given + first, &s, &work, by_location + first * columns,
               THIS_CHUNKS(sums, 1), by_x0 + first, by_given + first);
    }
}
