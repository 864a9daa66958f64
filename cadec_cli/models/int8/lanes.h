/* Vectors of LANES numbers, their sums, and e^x. */

#ifndef CADEC_LANES
#define CADEC_LANES

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif

#define LANES_OF_A_LOOP _Pragma("omp simd")
#define INLINE static inline __attribute__((always_inline))

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

#endif
