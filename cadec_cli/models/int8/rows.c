/* What stands between the products of an int8 network, each in one pass over a row while it is in the cache:
   norms, activations, rounding to 8 bits, scales, log-softmax. (Attention is in attention.c.)

   Everything is done row by row, on one core, with additions in an order that depends on the row alone: what
   becomes of a row never depends on the rows beside it. Rows that hold a NaN or an infinity are NaN from there
   on. Loops are plain C; `omp simd` lets them be done, and maxima be taken, by lanes. */

#include "lanes.h"

/* Rows become integers from 1 to 255, zero at 128 (int8_products.py). */
static const float LARGEST_INTEGER = 127.0f, ZERO_AND_HALF = 128.5f, LEAST = 1e-20f;

/* x Φ(x), with Abramowitz and Stegun's 7.1.26 for erf: within 5e-7. */
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

/* The same with tanh in place of erf: x / (1 + e^(-2z)). */
INLINE float gelu_tanh(float x) {
    float z = 1.5957691f * (x + 0.044715f * x * x * x);
    z = z < -87.0f ? -87.0f : z;
    return x / (1.0f + exponential(-z > 87.0f ? 87.0f : -z));
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
    if (isnan(largest)) return; /* whatever stands there, it is multiplied with NaN */
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

/* The same for rows whose numbers are multiplied by a factor for each column; `scratch` has room for a row. */
void cadec_level_round(const float *x, int64_t stride, int64_t rows, int64_t width, const float *factors,
                       float *scratch, uint8_t *out, float *largest) {
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * stride;
        LANES_OF_A_LOOP
        for (int64_t i = 0; i < width; i++) scratch[i] = row[i] * factors[i];
        largest[r] = largest_of(scratch, width);
        round_row(scratch, width, largest[r], out + r * width);
    }
}

/* What rounding left over, times 254, rounded likewise: from -½ … ½ to -127 … 127. */
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

/* A norm by the mean of the squares, without a mean or an offset. */
void cadec_rms_norm(const float *x, int64_t rows, int64_t width, const float *gain, float epsilon, float *out) {
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * width;
        float *made = out + r * width;
        float inverse = 1.0f / sqrtf(sum_of_squares(row, width, 0.0f) / (float)width + epsilon);
        LANES_OF_A_LOOP
        for (int64_t i = 0; i < width; i++) made[i] = row[i] * inverse * gain[i];
    }
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

/* Scale, activate and round; the product is written over. Activations are numbered as in row_operations.py. */
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

/* The heads of attention from the product that has queries, keys and values of each row side by side: scaled, the
   queries and keys normed by the mean of their squares where there are gains, and turned by their positions. What
   comes out is (rows, heads, size) each. */
INLINE void turn_head(const float *x, int64_t size, float scale, const float *bias, const float *gain, float epsilon,
                      const float *cosine, const float *sine, float *scratch, float *out) {
    int64_t half = size / 2;
    LANES_OF_A_LOOP
    for (int64_t i = 0; i < size; i++) scratch[i] = x[i] * scale + (bias ? bias[i] : 0.0f);
    if (gain) {
        float inverse = 1.0f / sqrtf(sum_of_squares(scratch, size, 0.0f) / (float)size + epsilon);
        LANES_OF_A_LOOP
        for (int64_t i = 0; i < size; i++) scratch[i] *= inverse * gain[i];
    }
    LANES_OF_A_LOOP
    for (int64_t i = 0; i < half; i++) {
        float low = scratch[i], high = scratch[half + i];
        out[i] = low * cosine[i] - high * sine[i];
        out[half + i] = high * cosine[half + i] + low * sine[half + i];
    }
}

void cadec_turn(const float *product, int64_t rows, int64_t q_heads, int64_t k_heads, int64_t size, const float *scale,
                const float *bias, const float *q_gain, const float *k_gain, float epsilon, const float *cosine,
                const float *sine, float *scratch, float *q, float *k, float *v) {
    int64_t queries = q_heads * size, keys = k_heads * size;
    for (int64_t r = 0; r < rows; r++) {
        const float *row = product + r * (queries + 2 * keys);
        for (int64_t i = 0; i < queries + keys; i += size) {
            int is_query = i < queries;
            turn_head(row + i, size, scale[r], bias ? bias + i : NULL, is_query ? q_gain : k_gain, epsilon,
                      cosine + r * size, sine + r * size, scratch,
                      is_query ? q + r * queries + i : k + r * keys + i - queries);
        }
        row += queries + keys;
        LANES_OF_A_LOOP
        for (int64_t i = 0; i < keys; i++)
            v[r * keys + i] = row[i] * scale[r] + (bias ? bias[queries + keys + i] : 0.0f);
    }
}

/* The inside of a gated feed-forward: of a product that has a gate and what it lets through side by side, the
   activated gate times the other, times a factor for each column, rounded. `scratch` has room for half a row. */
INLINE void gate_row(const float *row, int64_t half, float scale, const float *bias, int32_t activation,
                     const float *factors, float *out) {
    for (int64_t first = 0; first < half; first += 64) {
        int64_t end = first + 64 < half ? first + 64 : half;
        if (activation == 1) {
            LANES_OF_A_LOOP
            for (int64_t i = first; i < end; i++) out[i] = gelu(row[i] * scale + (bias ? bias[i] : 0.0f));
        } else if (activation == 2) {
            LANES_OF_A_LOOP
            for (int64_t i = first; i < end; i++) out[i] = swish(row[i] * scale + (bias ? bias[i] : 0.0f));
        } else {
            LANES_OF_A_LOOP
            for (int64_t i = first; i < end; i++) out[i] = gelu_tanh(row[i] * scale + (bias ? bias[i] : 0.0f));
        }
        LANES_OF_A_LOOP
        for (int64_t i = first; i < end; i++)
            out[i] *= (row[half + i] * scale + (bias ? bias[half + i] : 0.0f)) * factors[i];
    }
}

void cadec_gate_round(const float *product, int64_t rows, int64_t half, const float *scale, const float *bias,
                      int32_t activation, const float *factors, float *scratch, uint8_t *out, float *largest) {
    for (int64_t r = 0; r < rows; r++) {
        const float *row = product + r * 2 * half;
        if (bias)
            gate_row(row, half, scale[r], bias, activation, factors, scratch);
        else
            gate_row(row, half, scale[r], NULL, activation, factors, scratch);
        largest[r] = largest_of(scratch, half);
        round_row(scratch, half, largest[r], out + r * half);
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

/* The same where a product has some of the columns, those from `first`: the largest logit of each row so far, the
   sum of e^(logit - largest), and the logits of the tokens among these columns. */
void cadec_some_logits(const float *product, int64_t rows, int64_t width, const float *scale, const float *bias,
                       float temperature, int64_t first, int64_t count, const int64_t *edges, const int64_t *tokens,
                       float *most, float *sum, float *out) {
    int64_t edge = 0;
    float flatter = 1.0f / temperature;
    for (int64_t r = 0; r < rows; r++) {
        const float *row = product + r * width;
        float own = scale[r] * flatter, largest = most[r], here = 0.0f;
#pragma omp simd reduction(max : largest)
        for (int64_t i = 0; i < width; i++) {
            float one = logit(row, i, own, bias, flatter);
            largest = one > largest ? one : largest;
        }
        if (bias) {
#pragma omp simd reduction(+ : here)
            for (int64_t i = 0; i < width; i++) here += exponential(logit(row, i, own, bias, flatter) - largest);
        } else {
#pragma omp simd reduction(+ : here)
            for (int64_t i = 0; i < width; i++) here += exponential(logit(row, i, own, NULL, flatter) - largest);
        }
        sum[r] = sum[r] * exponential(most[r] - largest) + here;
        most[r] = largest;
        for (; edge < count && edges[edge] == r; edge++) {
            int64_t place = tokens[edge] - first;
            if (place >= 0 && place < width) out[edge] = logit(row, place, own, bias, flatter);
        }
    }
}

/* What all this was compiled from (compiling.py). */
const char *cadec_source(void) { return CADEC_SOURCE; }
