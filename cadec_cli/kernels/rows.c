/* What stands between the products of an int8 network, each in one pass over a row while it is in the cache:
   norms, activations, rounding to 8 bits, scales, attention of trees, log-softmax.

   Everything is done row by row, on one core, with additions in an order that depends on the row alone: what
   becomes of a row never depends on the rows beside it. Rows that hold a NaN or an infinity are NaN from there
   on. Compiled when cadec is installed (hatch_build.py), once for each level of the instruction set; compiled.py
   takes the one that fits. Loops are plain C; `omp simd` lets sums and maxima be taken by lanes. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif

#define LANES_OF_A_LOOP _Pragma("omp simd")
#define INLINE static inline __attribute__((always_inline))

/* ---- lanes ---- */

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t order __attribute__((vector_size(4 * LANES)));

INLINE vec load(const float *from) {
    vec made;
    memcpy(&made, from, sizeof made);
    return made;
}

/* Lanes of two vectors by number, those of the second after those of the first. */
#ifdef __clang__
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (order){__VA_ARGS__})
#endif

/* Sums over blocks of lanes halve, and there are twice as many: blocks of a and of b by turns. */
#if LANES == 16
INLINE vec of_8(vec a, vec b) {
    return PICK(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
           PICK(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
}
INLINE vec of_4(vec a, vec b) {
    return PICK(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27) +
           PICK(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
}
INLINE vec of_2(vec a, vec b) {
    return PICK(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
           PICK(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
}
INLINE vec of_1(vec a, vec b) {
    return PICK(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30) +
           PICK(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
}
#else
INLINE vec of_4(vec a, vec b) {
    return PICK(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + PICK(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}
INLINE vec of_2(vec a, vec b) {
    return PICK(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + PICK(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
}
INLINE vec of_1(vec a, vec b) {
    return PICK(a, b, 0, 8, 2, 10, 4, 12, 6, 14) + PICK(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
}
#endif

/* The sum of each of LANES vectors, in their order. */
INLINE vec sums(vec *each) {
#if LANES == 16
    for (int j = 0; j < 8; j++) each[j] = of_8(each[j], each[j + 8]);
#endif
    for (int j = 0; j < 4; j++) each[j] = of_4(each[j], each[j + 4]);
    for (int j = 0; j < 2; j++) each[j] = of_2(each[j], each[j + 2]);
    return of_1(each[0], each[1]);
}

INLINE float sum_of(vec one) {
#if LANES == 16
    one = of_8(one, one);
#endif
    one = of_4(one, one);
    one = of_2(one, one);
    return of_1(one, one)[0];
}

/* ---- rows ---- */

/* Rows become integers from 1 to 255, zero at 128 (int8_products.py). */
static const float LARGEST_INTEGER = 127.0f, ZERO_AND_HALF = 128.5f, LEAST = 1e-20f;

/* e^x of x ≤ 88, within 2 units in the last place: 2^n e^r, with r of at most ln 2 / 2 as a polynomial (Cephes). */
INLINE float exponential(float x) {
    const float magic = 12582912.0f; /* 1.5 · 2^23: what is added to it is rounded to an integer */
    x = x < -87.0f ? -87.0f : x;
    float n = (x * 1.44269504f + magic) - magic;
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t bits = ((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

/* x Φ(x), with Abramowitz and Stegun's 7.1.26 for erf: within 2e-7. */
INLINE float gelu(float x) {
    float z = fabsf(x) * 0.70710678f;
    float t = 1.0f / (1.0f + 0.3275911f * z);
    float p = 1.061405429f;
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    float tail = 0.5f * p * t * exponential(-z * z); /* Φ(-|x|) */
    return x * (x < 0.0f ? tail : 1.0f - tail);
}

INLINE float swish(float x) {
    float limited = x < -87.0f ? -87.0f : x; /* e^87 is still a number */
    return x / (1.0f + exponential(-limited > 87.0f ? 87.0f : -limited));
}

/* The largest number of a row, whatever its sign; NaN where there is an infinity or a NaN. Numbers without their
   signs are in the order of their bits. */
INLINE float largest_of(const float *x, int64_t width) {
    int32_t bits, most, infinity = 0x7f800000;
    memcpy(&most, &LEAST, sizeof most);
#pragma omp simd reduction(max : most) private(bits)
    for (int64_t i = 0; i < width; i++) {
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    float largest;
    memcpy(&largest, &most, sizeof largest);
    return most < infinity ? largest : NAN;
}

/* Sums of a row, and of the squares of its distances from a mean. */
INLINE float sum_of_row(const float *x, int64_t width) {
    vec even = {0}, odd = {0};
    int64_t i = 0;
    for (; i + 2 * LANES <= width; i += 2 * LANES) {
        even += load(x + i);
        odd += load(x + i + LANES);
    }
    float sum = sum_of(even + odd);
    for (; i < width; i++) sum += x[i];
    return sum;
}

INLINE float sum_of_squares(const float *x, int64_t width, float mean) {
    vec even = {0}, odd = {0};
    int64_t i = 0;
    for (; i + 2 * LANES <= width; i += 2 * LANES) {
        vec a = load(x + i) - mean, b = load(x + i + LANES) - mean;
        even += a * a;
        odd += b * b;
    }
    float sum = sum_of(even + odd);
    for (; i < width; i++) sum += (x[i] - mean) * (x[i] - mean);
    return sum;
}

INLINE void round_row(const float *x, int64_t width, float largest, uint8_t *out) {
    float scale = LARGEST_INTEGER / largest;
    LANES_OF_A_LOOP
    for (int64_t i = 0; i < width; i++) out[i] = (uint8_t)(int32_t)(x[i] * scale + ZERO_AND_HALF);
}

void cadec_round(const float *x, int64_t stride, int64_t rows, int64_t width, uint8_t *out, float *largest) {
    for (int64_t r = 0; r < rows; r++) {
        largest[r] = largest_of(x + r * stride, width);
        round_row(x + r * stride, width, largest[r], out + r * width);
    }
}

/* What rounding left over, times 254, rounded likewise: from -½ … ½ to -127 … 127. `out` holds the first rounding. */
void cadec_round_left_over(const float *x, int64_t stride, int64_t rows, int64_t width, const float *largest,
                           const uint8_t *rounded, uint8_t *out) {
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * stride;
        float scale = LARGEST_INTEGER / largest[r];
        LANES_OF_A_LOOP
        for (int64_t i = 0; i < width; i++) {
            float left = row[i] * scale - (float)((int32_t)rounded[r * width + i] - 128);
            out[r * width + i] = (uint8_t)(int32_t)(left * (2.0f * LARGEST_INTEGER) + ZERO_AND_HALF);
        }
    }
}

/* A layer norm; `scratch` has room for a row. */
typedef struct {
    const float *gain, *offset;
    float epsilon;
    float *scratch;
} norm;

INLINE float norm_round_row(const float *row, int64_t width, norm by, uint8_t *out) {
    float mean = sum_of_row(row, width) / (float)width;
    float inverse = 1.0f / sqrtf(sum_of_squares(row, width, mean) / (float)width + by.epsilon);
    LANES_OF_A_LOOP
    for (int64_t i = 0; i < width; i++) by.scratch[i] = (row[i] - mean) * inverse * by.gain[i] + by.offset[i];
    float largest = largest_of(by.scratch, width);
    round_row(by.scratch, width, largest, out);
    return largest;
}

void cadec_norm_round(const float *x, int64_t rows, int64_t width, const float *gain, const float *offset,
                      float epsilon, float *scratch, uint8_t *out, float *largest) {
    norm by = {gain, offset, epsilon, scratch};
    for (int64_t r = 0; r < rows; r++) largest[r] = norm_round_row(x + r * width, width, by, out + r * width);
}

/* Products with the scales of their rows, and the bias, which may be none. */
void cadec_scale(float *product, int64_t rows, int64_t width, const float *scale, const float *bias) {
    for (int64_t r = 0; r < rows; r++) {
        float *row = product + r * width;
        float own = scale[r];
        if (bias) {
            LANES_OF_A_LOOP
            for (int64_t i = 0; i < width; i++) row[i] = row[i] * own + bias[i];
        } else {
            LANES_OF_A_LOOP
            for (int64_t i = 0; i < width; i++) row[i] *= own;
        }
    }
}

/* The same, added to what the rows were before. */
INLINE void scale_add_row(const float *row, int64_t width, float scale, const float *bias, const float *before,
                          float *out) {
    LANES_OF_A_LOOP
    for (int64_t i = 0; i < width; i++) out[i] = before[i] + (row[i] * scale + bias[i]);
}

void cadec_scale_add(const float *product, int64_t rows, int64_t width, const float *scale, const float *bias,
                     const float *before, float *out) {
    for (int64_t r = 0; r < rows; r++)
        scale_add_row(product + r * width, width, scale[r], bias, before + r * width, out + r * width);
}

/* The same, and normed and rounded as well. */
void cadec_scale_add_norm_round(const float *product, int64_t rows, int64_t width, const float *scale,
                                const float *bias, const float *before, float *sum, const float *gain,
                                const float *offset, float epsilon, float *scratch, uint8_t *out, float *largest) {
    norm by = {gain, offset, epsilon, scratch};
    for (int64_t r = 0; r < rows; r++) {
        scale_add_row(product + r * width, width, scale[r], bias, before + r * width, sum + r * width);
        largest[r] = norm_round_row(sum + r * width, width, by, out + r * width);
    }
}

/* Scale, activate and round; the product is written over. Activations are numbered as in fused.py. */
void cadec_activate_round(float *product, int64_t rows, int64_t width, const float *scale, const float *bias,
                          int32_t activation, uint8_t *out, float *largest) {
    for (int64_t r = 0; r < rows; r++) {
        float *row = product + r * width;
        float own = scale[r];
        if (activation == 0) {
            LANES_OF_A_LOOP
            for (int64_t i = 0; i < width; i++) {
                float y = row[i] * own + bias[i];
                row[i] = y < 0.0f ? 0.0f : y;
            }
        } else if (activation == 1) {
            LANES_OF_A_LOOP
            for (int64_t i = 0; i < width; i++) row[i] = gelu(row[i] * own + bias[i]);
        } else {
            LANES_OF_A_LOOP
            for (int64_t i = 0; i < width; i++) row[i] = swish(row[i] * own + bias[i]);
        }
        largest[r] = largest_of(row, width);
        round_row(row, width, largest[r], out + r * width);
    }
}

/* A logit: what a product means, flattened by a temperature. */
INLINE float logit(const float *row, int64_t i, float scale, const float *bias, float flatter) {
    return bias ? row[i] * scale + bias[i] * flatter : row[i] * scale;
}

/* log Σ e^x of a row of logits. */
INLINE float normaliser(const float *row, int64_t width, float scale, const float *bias, float flatter) {
    float most = -INFINITY, sum = 0.0f;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < width; i++) {
        float own = logit(row, i, scale, bias, flatter);
        most = own > most ? own : most;
    }
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; i++) sum += exponential(logit(row, i, scale, bias, flatter) - most);
    return most + logf(sum);
}

/* log p of all: products become log-probabilities. */
void cadec_log_softmax(float *product, int64_t rows, int64_t width, const float *scale, const float *bias,
                       float temperature) {
    float flatter = 1.0f / temperature;
    for (int64_t r = 0; r < rows; r++) {
        float *row = product + r * width;
        float own = scale[r] * flatter, all = bias ? normaliser(row, width, own, bias, flatter)
                                                   : normaliser(row, width, own, NULL, flatter);
        if (bias) {
            LANES_OF_A_LOOP
            for (int64_t i = 0; i < width; i++) row[i] = logit(row, i, own, bias, flatter) - all;
        } else {
            LANES_OF_A_LOOP
            for (int64_t i = 0; i < width; i++) row[i] = logit(row, i, own, NULL, flatter) - all;
        }
    }
}

/* log p of some: of `tokens` after the rows numbered by `edges`, in rising order; NaN of what is no token. */
void cadec_log_probs(const float *product, int64_t rows, int64_t width, const float *scale, const float *bias,
                     float temperature, int64_t count, const int64_t *edges, const int64_t *tokens, float *out) {
    int64_t edge = 0;
    float flatter = 1.0f / temperature;
    for (int64_t r = 0; r < rows; r++) {
        const float *row = product + r * width;
        float own = scale[r] * flatter, all = bias ? normaliser(row, width, own, bias, flatter)
                                                   : normaliser(row, width, own, NULL, flatter);
        for (; edge < count && edges[edge] == r; edge++) {
            int known = tokens[edge] >= 0 && tokens[edge] < width;
            out[edge] = known ? logit(row, tokens[edge], own, bias, flatter) - all : NAN;
        }
    }
}

/* ---- attention ---- */

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
    if (!count) return NAN;
#pragma omp simd reduction(max : most)
    for (int64_t j = 0; j < count; j++) most = scores[j] > most ? scores[j] : most;
    LANES_OF_A_LOOP
    for (int64_t j = 0; j < count; j++) scores[j] = exponential(scores[j] - most);
    vec sum = load(scores);
    for (int64_t j = LANES; j < count; j += LANES) sum += load(scores + j);
    return 1.0f / sum_of(sum);
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
INLINE void attend(const job *one, lists seen, heads q, heads k, heads v, int64_t count, int64_t size, float *scores,
                   float *factors, float *out) {
    float scale = 1.0f / sqrtf((float)size);
    for (int64_t head = 0; head < count; head++) {
        const float *queries = q.start + one->batch * q.batch + head * q.head + one->query * q.row;
        const float *keys = k.start + one->batch * k.batch + head * k.head;
        const float *values = v.start + one->batch * v.batch + head * v.head;
        int64_t start = 0;
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

/* Attention of (batch, heads, queries, size) to as many heads of keys and values: (rows, heads · size), rounded.
   Rows of keys are as far from each other as those of values. A query that sees nothing becomes NaN. Returns
   whether there was memory for it. */
int32_t cadec_attend_round(const job *jobs, int64_t count, int32_t told, const float *q, const float *k,
                           const float *v, const int64_t *strides, int64_t head_count, int64_t size,
                           uint8_t *out, float *largest) {
    int64_t most_pairs = 0, most_queries = 0, width = head_count * size;
    for (int64_t number = 0; number < count; number++) {
        int64_t pairs = padded(jobs[number].cached_keys + jobs[number].own_keys) * jobs[number].queries;
        most_pairs = pairs > most_pairs ? pairs : most_pairs;
        most_queries = jobs[number].queries > most_queries ? jobs[number].queries : most_queries;
    }
    lists seen = {malloc(sizeof(int32_t) * (size_t)(most_pairs + 1)),
                  malloc(sizeof(int64_t) * (size_t)(most_queries + 1))};
    float *scores = malloc(sizeof(float) * (size_t)(most_pairs + 1));
    float *factors = malloc(sizeof(float) * (size_t)(most_queries + 1));
    float *made = malloc(sizeof(float) * (size_t)(most_queries * width + 1));
    int32_t enough = seen.places && seen.counts && scores && factors && made;
    heads queries = {q, strides[0], strides[1], strides[2]};
    heads keys = {k, strides[3], strides[4], strides[5]};
    heads values = {v, strides[6], strides[7], strides[8]};
    for (int64_t number = 0; enough && number < count; number++) {
        const job *one = jobs + number;
        look(one, told, keys.row, seen);
        if (size == 32)
            attend(one, seen, queries, keys, values, head_count, 32, scores, factors, made);
        else if (size == 64)
            attend(one, seen, queries, keys, values, head_count, 64, scores, factors, made);
        else
            attend(one, seen, queries, keys, values, head_count, size, scores, factors, made);
        cadec_round(made, width, one->queries, width, out + one->out * width, largest + one->out);
    }
    free(seen.places);
    free(seen.counts);
    free(scores);
    free(factors);
    free(made);
    return enough;
}

/* Another one where what a function takes or does has changed (compiled.py). */
int32_t cadec_version(void) { return 1; }
