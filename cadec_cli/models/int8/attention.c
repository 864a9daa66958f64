/* Attention between the products of an int8 network: of each query to exactly the keys that it sees, which of a
   trie's node are the context and its ancestors. What becomes of a query depends on those alone. */

#include <stdlib.h>

#include "lanes.h"

void cadec_round(const float *x, int64_t stride, int64_t rows, int64_t width, uint8_t *out, float *largest);

/* How it is told what a query sees: byte by byte, or by the parents of the keys that came with it. */
enum { BYTES, PARENTS };

/* Some queries of one row of a batch, and what they attend to: keys from two places, as far as a mask lets them. */
typedef struct {
    int64_t batch, query, queries;     /* where the queries are */
    int64_t cached, cached_keys;       /* the keys that were there before */
    int64_t own, own_keys;             /* and those that came with them */
    int64_t mask, mask_stride;         /* where it is told what they see, and elements between rows; 0 is: all */
    int64_t out;                       /* the first row of the result */
} job;

typedef struct {
    const float *start;
    int64_t batch, head, row; /* elements from one to the next */
} heads;

/* Lists of keys, and their scores, are padded to a multiple of LANES. */
INLINE int64_t padded(int64_t count) { return (count + LANES - 1) / LANES * LANES; }

/* Products of one query with the keys that it sees, times `scale`. */
INLINE void scores_of(const float *query, const float *keys, const int32_t *seen, int64_t count, int64_t size,
                      float scale, float *scores) {
    if (size % LANES) {
        for (int64_t j = 0; j < count; j++) {
            float sum = 0.0f;
            for (int64_t i = 0; i < size; i++) sum += query[i] * keys[seen[j] + i];
            scores[j] = sum * scale;
        }
    } else {
        for (int64_t first = 0; first < count; first += LANES) {
            vec each[LANES];
#pragma GCC unroll 16
            for (int j = 0; j < LANES; j++) {
                const float *key = keys + seen[first + j];
                vec sum = load(query) * load(key);
                for (int64_t i = LANES; i < size; i += LANES) sum += load(query + i) * load(key + i);
                each[j] = sum;
            }
            vec made = sums(each) * scale;
            memcpy(scores + first, &made, sizeof made);
        }
    }
    for (int64_t j = count; j < padded(count); j++) scores[j] = -INFINITY; /* next to nothing, after exp */
}

/* Softmax of a multiple of LANES scores, but for its division: returns what to multiply with instead. */
INLINE float exponentials(float *scores, int64_t count) {
    float most = -INFINITY;
    if (!count) return 0.0f;
#pragma omp simd reduction(max : most)
    for (int64_t j = 0; j < count; j++) most = scores[j] > most ? scores[j] : most;
    LANES_OF_A_LOOP
    for (int64_t j = 0; j < count; j++) scores[j] = exponential(scores[j] - most);
    vec sum = load(scores);
    for (int64_t j = LANES; j < count; j += LANES) sum += load(scores + j);
    return 1.0f / sum_of(sum);
}

/* The same for the queries of HEADS heads that have their keys in common: each key is read once for all. */
enum { HEADS = 4, KEYS = 4 };

INLINE void shared_scores(const float *query, int64_t next_head, const float *keys, const int32_t *seen, int64_t count,
                          int64_t size, float scale, float *scores, int64_t next_scores) {
    for (int64_t first = 0; first < padded(count); first += KEYS) {
        vec each[HEADS * KEYS] = {{0}};
        for (int64_t i = 0; i < size; i += LANES) {
            vec key[KEYS];
#pragma GCC unroll 4
            for (int j = 0; j < KEYS; j++) key[j] = load(keys + seen[first + j] + i);
#pragma GCC unroll 4
            for (int head = 0; head < HEADS; head++) {
                vec own = load(query + head * next_head + i);
#pragma GCC unroll 4
                for (int j = 0; j < KEYS; j++) each[head * KEYS + j] += own * key[j];
            }
        }
        float made[HEADS * KEYS];
        for (int head = 0; head < HEADS; head += LANES / KEYS) {
            vec of_heads = sums(each + head * KEYS) * scale;
            memcpy(made + head * KEYS, &of_heads, sizeof of_heads);
        }
        for (int head = 0; head < HEADS; head++)
            memcpy(scores + head * next_scores + first, made + head * KEYS, KEYS * sizeof(float));
    }
    for (int head = 0; head < HEADS; head++)
        for (int64_t j = count; j < padded(count); j++) scores[head * next_scores + j] = -INFINITY;
}

/* And the values that they see, by their weights. */
INLINE void shared_weighted(const float *weights, int64_t next_weights, const float *values, const int32_t *seen,
                            int64_t count, int64_t size, const float *factors, float *out, int64_t next_out) {
    for (int64_t i = 0; i < size; i += 2 * LANES) {
        int both = i + LANES < size;
        vec sum[HEADS][2] = {{{0}}};
        for (int64_t j = 0; j < count; j++) {
            const float *value = values + seen[j] + i;
            vec low = load(value), high = both ? load(value + LANES) : low;
#pragma GCC unroll 4
            for (int head = 0; head < HEADS; head++) {
                float own = weights[head * next_weights + j];
                sum[head][0] += low * own;
                sum[head][1] += high * own;
            }
        }
        for (int head = 0; head < HEADS; head++)
            for (int part = 0; part <= both; part++) {
                vec made = sum[head][part] * factors[head];
                memcpy(out + head * next_out + i + part * LANES, &made, sizeof made);
            }
    }
}

/* The values that a query sees, by their weights. */
INLINE void weighted(const float *weights, const float *values, const int32_t *seen, int64_t count, int64_t size,
                     float factor, float *out) {
    if (size % LANES) {
        for (int64_t i = 0; i < size; i++) {
            float sum = 0.0f;
            for (int64_t j = 0; j < count; j++) sum += weights[j] * values[seen[j] + i];
            out[i] = sum * factor;
        }
        return;
    }
    /* Two vectors at a time, and keys by turns of two: sums that need not wait for each other. */
    for (int64_t i = 0; i < size; i += 2 * LANES) {
        int both = i + LANES < size;
        const float *column = values + i;
        vec sum[2][2] = {{{0}}};
        int64_t j = 0;
        if (both) {
            for (; j + 1 < count; j += 2) {
                const float *even = column + seen[j], *odd = column + seen[j + 1];
                sum[0][0] += load(even) * weights[j];
                sum[0][1] += load(even + LANES) * weights[j];
                sum[1][0] += load(odd) * weights[j + 1];
                sum[1][1] += load(odd + LANES) * weights[j + 1];
            }
        }
        for (; j < count; j++) {
            sum[0][0] += load(column + seen[j]) * weights[j];
            if (both) sum[0][1] += load(column + seen[j] + LANES) * weights[j];
        }
        for (int part = 0; part <= both; part++) {
            vec made = (sum[0][part] + sum[1][part]) * factor;
            memcpy(out + i + part * LANES, &made, sizeof made);
        }
    }
}

/* What the queries of a job see: for each a list of where keys and values start, and how many they are. */
typedef struct {
    int32_t *places;
    int64_t *counts;
} lists;

static void look(const job *one, int32_t told, int64_t stride, lists seen) {
    int32_t *list = seen.places;
    for (int64_t query = 0; query < one->queries; query++) {
        int64_t count = 0;
        if (told == PARENTS) {
            /* All that is cached; of the others itself, its parent, and so on: the oldest first. */
            const int64_t *parents = (const int64_t *)(intptr_t)one->mask;
            int64_t self = one->own_keys - one->queries + query;
            for (int64_t key = 0; key < one->cached_keys; key++) list[count++] = (int32_t)((one->cached + key) * stride);
            for (int64_t node = self; node >= 0; node = parents[node]) count++;
            for (int64_t node = self, place = count; node >= 0; node = parents[node])
                list[--place] = (int32_t)((one->own + node) * stride);
        } else {
            const uint8_t *mask = (const uint8_t *)(intptr_t)one->mask + query * one->mask_stride;
            for (int64_t key = 0; key < one->cached_keys + one->own_keys; key++) {
                int64_t row = key < one->cached_keys ? one->cached + key : one->own + key - one->cached_keys;
                list[count] = (int32_t)(row * stride);
                count += !one->mask || mask[key];
            }
        }
        seen.counts[query] = count;
        for (int64_t j = count; j < padded(count); j++) list[j] = list[count - 1];
        list += padded(count);
    }
}

/* Head by head, and within it step by step for all queries, so that none waits for another. */
INLINE void attend(const job *one, lists seen, heads q, heads k, heads v, int64_t count, int64_t sharing, int64_t size,
                   float scale, float *scores, float *factors, float *out) {
    for (int64_t head = 0; head < count; head++) {
        const float *queries = q.start + one->batch * q.batch + head * q.head + one->query * q.row;
        const float *keys = k.start + one->batch * k.batch + head / sharing * k.head;
        const float *values = v.start + one->batch * v.batch + head / sharing * v.head;
        int64_t start = 0;
        if (size % LANES == 0 && head % sharing + HEADS <= sharing) {
            for (int64_t query = 0; query < one->queries; start += padded(seen.counts[query++])) {
                const int32_t *places = seen.places + start;
                int64_t some = seen.counts[query], all = padded(some);
                float made[HEADS];
                shared_scores(queries + query * q.row, q.head, keys, places, some, size, scale, scores, all);
                for (int own = 0; own < HEADS; own++) made[own] = exponentials(scores + own * all, all);
                shared_weighted(scores, all, values, places, some, size, made, out + (query * count + head) * size,
                                size);
            }
            head += HEADS - 1;
            continue;
        }
        for (int64_t query = 0; query < one->queries; start += padded(seen.counts[query++]))
            scores_of(queries + query * q.row, keys, seen.places + start, seen.counts[query], size, scale,
                      scores + start);
        start = 0;
        for (int64_t query = 0; query < one->queries; start += padded(seen.counts[query++]))
            factors[query] = exponentials(scores + start, padded(seen.counts[query]));
        start = 0;
        for (int64_t query = 0; query < one->queries; start += padded(seen.counts[query++]))
            weighted(scores + start, values, seen.places + start, seen.counts[query], size, factors[query],
                     out + (query * count + head) * size);
    }
}

/* Attention of (batch, heads, queries, size) to keys and values, of which as many heads as `sharing` says have the
   same: (rows, heads · size), rounded, or as they are if there is `plain` to write them to. Rows of keys are as far
   from each other as those of values. A query that sees nothing becomes 0. Returns whether there was memory for it. */
int32_t cadec_attend(const job *jobs, int64_t count, int32_t told, const float *q, const float *k, const float *v,
                     const int64_t *strides, int64_t head_count, int64_t sharing, int64_t size, float scale,
                     float *plain, uint8_t *out, float *largest) {
    int64_t most_pairs = HEADS * LANES, most_queries = 0, width = head_count * size;
    for (int64_t number = 0; number < count; number++) {
        int64_t keys = padded(jobs[number].cached_keys + jobs[number].own_keys);
        int64_t pairs = keys * (jobs[number].queries < HEADS ? HEADS : jobs[number].queries);
        most_pairs = pairs > most_pairs ? pairs : most_pairs;
        most_queries = jobs[number].queries > most_queries ? jobs[number].queries : most_queries;
    }
    lists seen = {malloc(sizeof(int32_t) * (size_t)(most_pairs + 1)),
                  malloc(sizeof(int64_t) * (size_t)(most_queries + 1))};
    float *scores = malloc(sizeof(float) * (size_t)(most_pairs + 1));
    float *factors = malloc(sizeof(float) * (size_t)(most_queries + 1));
    float *made = malloc(sizeof(float) * (size_t)((plain ? 0 : most_queries * width) + 1));
    int32_t enough = seen.places && seen.counts && scores && factors && made;
    heads queries = {q, strides[0], strides[1], strides[2]};
    heads keys = {k, strides[3], strides[4], strides[5]};
    heads values = {v, strides[6], strides[7], strides[8]};
    for (int64_t number = 0; enough && number < count; number++) {
        const job *one = jobs + number;
        float *rows = plain ? plain + one->out * width : made;
        look(one, told, keys.row, seen);
        if (size == 32)
            attend(one, seen, queries, keys, values, head_count, sharing, 32, scale, scores, factors, rows);
        else if (size == 64)
            attend(one, seen, queries, keys, values, head_count, sharing, 64, scale, scores, factors, rows);
        else if (size == 256)
            attend(one, seen, queries, keys, values, head_count, sharing, 256, scale, scores, factors, rows);
        else
            attend(one, seen, queries, keys, values, head_count, sharing, size, scale, scores, factors, rows);
        if (!plain) cadec_round(made, width, one->queries, width, out + one->out * width, largest + one->out);
    }
    free(seen.places);
    free(seen.counts);
    free(scores);
    free(factors);
    free(made);
    return enough;
}
