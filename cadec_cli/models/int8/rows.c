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

/* What all this was compiled from (compiling.py). */
const char *cadec_source(void) { return CADEC_SOURCE; }
