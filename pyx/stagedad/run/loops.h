/*
** loops.h - stagedad's own strided loops.
**
** All have the signature of a NumPy strided loop, so that the interpreter
** calls both alike:
**
**     int loop(context, char *const *data, const npy_intp *dims,
**              const npy_intp *strides, auxdata)
**
** dims[0] is the length of the loop, strides[k] the byte step of operand k;
** further dims are sizes that a loop needs (see each).  Outputs come after
** inputs.  They use no Python, allocate nothing, and return 0, or -1 when the
** data is at fault (an index out of bounds, a negative exponent).
**
** copy, where and gather move bytes with memcpy, so that their operands need
** no alignment.  All others want aligned operands, as NumPy's own loops do.
*/
#ifndef STAGEDAD_RUN_LOOPS_H
#define STAGEDAD_RUN_LOOPS_H

#include <numpy/npy_common.h>
#include <stdint.h>
#include <string.h>

#include "half.h"

typedef int (*sad_loop)(void* context, char* const* data, const npy_intp* dims,
                        const npy_intp* strides, void* auxdata);

/* One typed loop, ready to be called. */
typedef struct {
  sad_loop loop;
  void* context;
  void* auxdata;
} sad_kernel;

typedef struct {
  float re, im;
} sad_c64;
typedef struct {
  double re, im;
} sad_c128;

#define SAD_ARGS \
  void *context, char *const *data, const npy_intp *dims, const npy_intp *strides, void *auxdata
#define SAD_UNUSED (void)context, (void)auxdata

/* Operands coincide or are apart: iterations of a loop do not depend on each other. */
#if defined(__GNUC__) && !defined(__clang__)
#define SAD_IN_STEP _Pragma("GCC ivdep")
#else
#define SAD_IN_STEP
#endif

/* copy: (source, target), by item size ----------------------------------- */

#define SAD_COPY(SIZE)                                           \
  static int sad_copy_##SIZE(SAD_ARGS) {                         \
    npy_intp n = dims[0], step = strides[0], to = strides[1], i; \
    const char* source = data[0];                                \
    char* target = data[1];                                      \
    SAD_UNUSED;                                                  \
    if (step == SIZE && to == SIZE) {                            \
      memmove(target, source, (size_t)n * SIZE);                 \
      return 0;                                                  \
    }                                                            \
    for (i = 0; i < n; i++, source += step, target += to) {      \
      memcpy(target, source, SIZE);                              \
    }                                                            \
    return 0;                                                    \
  }
SAD_COPY(1)
SAD_COPY(2)
SAD_COPY(4)
SAD_COPY(8)
SAD_COPY(16)

/* where: (condition, then, else, target), by item size -------------------- */

#define SAD_WHERE(SIZE, ...)                                                     \
  static int sad_where_##SIZE(SAD_ARGS) {                                        \
    npy_intp n = dims[0], i;                                                     \
    npy_intp s0 = strides[0], s1 = strides[1], s2 = strides[2], s3 = strides[3]; \
    const char *condition = data[0], *then = data[1], *other = data[2];          \
    char* target = data[3];                                                      \
    SAD_UNUSED;                                                                  \
    __VA_ARGS__                                                                  \
    for (i = 0; i < n; i++) {                                                    \
      memcpy(target, *condition ? then : other, SIZE);                           \
      condition += s0, then += s1, other += s2, target += s3;                    \
    }                                                                            \
    return 0;                                                                    \
  }
/* Dense operands, chosen without a branch, so that compilers vectorise. */
#define SAD_WHERE_DENSE(TYPE)                                                      \
  if (s0 == 1 && s1 == sizeof(TYPE) && s2 == sizeof(TYPE) && s3 == sizeof(TYPE)) { \
    SAD_IN_STEP                                                                    \
    for (i = 0; i < n; i++) {                                                      \
      TYPE a = ((const TYPE*)then)[i], b = ((const TYPE*)other)[i];                \
      ((TYPE*)target)[i] = condition[i] ? a : b;                                   \
    }                                                                              \
    return 0;                                                                      \
  }
SAD_WHERE(1, )
SAD_WHERE(2, )
SAD_WHERE(4, SAD_WHERE_DENSE(uint32_t))
SAD_WHERE(8, SAD_WHERE_DENSE(uint64_t))
SAD_WHERE(16, )

/*
** mul0: (g, partial, target): 0 where g == 0, else g * partial.  What is masked
** is not even multiplied: 0 * inf would raise a flag.
*/

#define SAD_MUL0_REAL(NAME, TYPE)                                            \
  static int sad_mul0_##NAME(SAD_ARGS) {                                     \
    npy_intp n = dims[0], i;                                                 \
    SAD_UNUSED;                                                              \
    if (strides[0] == sizeof(TYPE) && strides[1] == sizeof(TYPE) &&          \
        strides[2] == sizeof(TYPE)) {                                        \
      const TYPE *g = (const TYPE*)data[0], *partial = (const TYPE*)data[1]; \
      TYPE* target = (TYPE*)data[2];                                         \
      for (i = 0; i < n; i++) {                                              \
        TYPE factor = g[i] == 0 ? 0 : partial[i];                            \
        target[i] = g[i] == 0 ? 0 : g[i] * factor;                           \
      }                                                                      \
      return 0;                                                              \
    }                                                                        \
    for (i = 0; i < n; i++) {                                                \
      TYPE g = *(TYPE*)(data[0] + i * strides[0]);                           \
      TYPE factor = g == 0 ? 0 : *(TYPE*)(data[1] + i * strides[1]);         \
      *(TYPE*)(data[2] + i * strides[2]) = g == 0 ? 0 : g * factor;          \
    }                                                                        \
    return 0;                                                                \
  }
SAD_MUL0_REAL(f32, float)
SAD_MUL0_REAL(f64, double)

static int sad_mul0_f16(SAD_ARGS) {
  npy_intp n = dims[0], i;
  SAD_UNUSED;
  for (i = 0; i < n; i++) {
    double g = sad_half_to_double(*(uint16_t*)(data[0] + i * strides[0]));
    double partial = sad_half_to_double(*(uint16_t*)(data[1] + i * strides[1]));
    *(uint16_t*)(data[2] + i * strides[2]) = g == 0 ? 0 : sad_half_from_double(g * partial);
  }
  return 0;
}

#define SAD_MUL0_COMPLEX(NAME, TYPE)                \
  static int sad_mul0_##NAME(SAD_ARGS) {            \
    npy_intp n = dims[0], i;                        \
    SAD_UNUSED;                                     \
    for (i = 0; i < n; i++) {                       \
      TYPE g = *(TYPE*)(data[0] + i * strides[0]);  \
      TYPE p = *(TYPE*)(data[1] + i * strides[1]);  \
      TYPE product = {0, 0};                        \
      if (g.re != 0 || g.im != 0) {                 \
        product.re = g.re * p.re - g.im * p.im;     \
        product.im = g.re * p.im + g.im * p.re;     \
      }                                             \
      *(TYPE*)(data[2] + i * strides[2]) = product; \
    }                                               \
    return 0;                                       \
  }
SAD_MUL0_COMPLEX(c64, sad_c64)
SAD_MUL0_COMPLEX(c128, sad_c128)

/*
** gather: (source, indices i64, target).  dims: loop length, extent of the
** indexed axis, bytes of one entry (contiguous).  strides[0] steps the indexed
** axis.
*/
static int sad_gather(SAD_ARGS) {
  npy_intp n = dims[0], extent = dims[1], bytes = dims[2], i;
  SAD_UNUSED;
  for (i = 0; i < n; i++) {
    int64_t index;
    const char* source;
    memcpy(&index, data[1] + i * strides[1], 8);
    if (index < -(int64_t)extent || index >= (int64_t)extent) return -1;
    source = data[0] + (index < 0 ? index + extent : index) * strides[0];
    if (bytes == 8) {
      memcpy(data[2] + i * strides[2], source, 8);
    } else {
      memcpy(data[2] + i * strides[2], source, (size_t)bytes);
    }
  }
  return 0;
}

/*
** take_last: (source, indices i64, places i64, target), as gather, but zeros where
** a later index is the same.  `places` is scratch, an item an entry of the axis:
** only those named by an index are looked at, after they were written.
*/
static int sad_take_last(SAD_ARGS) {
  npy_intp n = dims[0], extent = dims[1], bytes = dims[2], i;
  int64_t* places = (int64_t*)data[2];
  SAD_UNUSED;
  for (i = 0; i < n; i++) {
    int64_t index = *(int64_t*)(data[1] + i * strides[1]);
    if (index < -(int64_t)extent || index >= (int64_t)extent) return -1;
    places[index < 0 ? index + extent : index] = i;
  }
  for (i = 0; i < n; i++) {
    int64_t index = *(int64_t*)(data[1] + i * strides[1]);
    if (index < 0) index += extent;
    if (places[index] == i) {
      memcpy(data[3] + i * strides[3], data[0] + index * strides[0], (size_t)bytes);
    } else {
      memset(data[3] + i * strides[3], 0, (size_t)bytes);
    }
  }
  return 0;
}

/*
** scatter: (value, indices i64, target), target[indices[i]] = value[i] in the
** order of i.  dims: loop length, extent of the indexed axis, bytes of one entry
** (contiguous).  strides[2] steps the indexed axis.
*/
static int sad_scatter(SAD_ARGS) {
  npy_intp n = dims[0], extent = dims[1], bytes = dims[2], i;
  SAD_UNUSED;
  for (i = 0; i < n; i++) {
    int64_t index = *(int64_t*)(data[1] + i * strides[1]);
    if (index < -(int64_t)extent || index >= (int64_t)extent) return -1;
    memcpy(data[2] + (index < 0 ? index + extent : index) * strides[2],
           data[0] + i * strides[0], (size_t)bytes);
  }
  return 0;
}

/*
** scatter_add: (g, indices i64, target), target[indices[i]] += g[i] in the
** order of i, so the result is the same in every run.  dims: loop length,
** extent of the indexed axis, items of one entry (contiguous).  strides[2]
** steps the indexed axis.
*/
#define SAD_SCATTER_ADD(NAME, TYPE, ADD)                                             \
  static int sad_scatter_add_##NAME(SAD_ARGS) {                                      \
    npy_intp n = dims[0], extent = dims[1], items = dims[2], i, j;                   \
    SAD_UNUSED;                                                                      \
    for (i = 0; i < n; i++) {                                                        \
      int64_t index = *(int64_t*)(data[1] + i * strides[1]);                         \
      const TYPE* g = (const TYPE*)(data[0] + i * strides[0]);                       \
      TYPE* target;                                                                  \
      if (index < -(int64_t)extent || index >= (int64_t)extent) return -1;           \
      target = (TYPE*)(data[2] + (index < 0 ? index + extent : index) * strides[2]); \
      for (j = 0; j < items; j++) {                                                  \
        ADD;                                                                         \
      }                                                                              \
    }                                                                                \
    return 0;                                                                        \
  }
#define SAD_PLUS target[j] += g[j]
#define SAD_WRAP(U) target[j] = (U)((U)target[j] + (U)g[j])
SAD_SCATTER_ADD(b1, uint8_t, target[j] = target[j] || g[j])
SAD_SCATTER_ADD(i8, int8_t, target[j] = (int8_t)(uint8_t)((uint8_t)target[j] + (uint8_t)g[j]))
SAD_SCATTER_ADD(i16, int16_t,
                target[j] = (int16_t)(uint16_t)((uint16_t)target[j] + (uint16_t)g[j]))
SAD_SCATTER_ADD(i32, int32_t, target[j] = (int32_t)((uint32_t)target[j] + (uint32_t)g[j]))
SAD_SCATTER_ADD(i64, int64_t, target[j] = (int64_t)((uint64_t)target[j] + (uint64_t)g[j]))
SAD_SCATTER_ADD(u8, uint8_t, SAD_WRAP(uint8_t))
SAD_SCATTER_ADD(u16, uint16_t, SAD_WRAP(uint16_t))
SAD_SCATTER_ADD(u32, uint32_t, SAD_WRAP(uint32_t))
SAD_SCATTER_ADD(u64, uint64_t, SAD_WRAP(uint64_t))
SAD_SCATTER_ADD(f16, uint16_t,
                target[j] = sad_half_from_double(sad_half_to_double(target[j]) +
                                                 sad_half_to_double(g[j])))
SAD_SCATTER_ADD(f32, float, SAD_PLUS)
SAD_SCATTER_ADD(f64, double, SAD_PLUS)
SAD_SCATTER_ADD(c64, sad_c64, (target[j].re += g[j].re, target[j].im += g[j].im))
SAD_SCATTER_ADD(c128, sad_c128, (target[j].re += g[j].re, target[j].im += g[j].im))

/* check_exponent: (exponents i64): -1 if one is negative ------------------- */

static int sad_check_exponent(SAD_ARGS) {
  npy_intp i;
  SAD_UNUSED;
  for (i = 0; i < dims[0]; i++) {
    if (*(int64_t*)(data[0] + i * strides[0]) < 0) return -1;
  }
  return 0;
}

/* check_indices: (indices i64): -1 if one is out of bounds.  dims: loop length, extent. */
static int sad_check_indices(SAD_ARGS) {
  npy_intp i;
  SAD_UNUSED;
  for (i = 0; i < dims[0]; i++) {
    int64_t index = *(int64_t*)(data[0] + i * strides[0]);
    if (index < -(int64_t)dims[1] || index >= (int64_t)dims[1]) return -1;
  }
  return 0;
}

/*
** short_*: the correctly rounded operations, for loops of a few elements, where
** entering NumPy's loop costs more than the work (3 ns against 7 ns at one
** element).  IEEE leaves no choice of result, so both give the same bits.
*/
#define SAD_SHORT_BINARY(NAME, CODE, TYPE, OP)                       \
  static int sad_short_##NAME##_##CODE(SAD_ARGS) {                   \
    npy_intp n = dims[0], i;                                         \
    const char *left = data[0], *right = data[1];                    \
    char* target = data[2];                                          \
    SAD_UNUSED;                                                      \
    *(TYPE*)target = *(TYPE*)left OP * (TYPE*)right;                 \
    if (n == 1) return 0;                                            \
    if (strides[0] == sizeof(TYPE) && strides[1] == sizeof(TYPE) &&  \
        strides[2] == sizeof(TYPE)) {                                \
      SAD_IN_STEP                                                    \
      for (i = 1; i < n; i++) {                                      \
        ((TYPE*)target)[i] = ((TYPE*)left)[i] OP((TYPE*)right)[i];   \
      }                                                              \
      return 0;                                                      \
    }                                                                \
    for (i = 1; i < n; i++) {                                        \
      left += strides[0], right += strides[1], target += strides[2]; \
      *(TYPE*)target = *(TYPE*)left OP * (TYPE*)right;               \
    }                                                                \
    return 0;                                                        \
  }
#define SAD_SHORT_UNARY(NAME, CODE, TYPE, EXPR)                           \
  static int sad_short_##NAME##_##CODE(SAD_ARGS) {                        \
    npy_intp n = dims[0], i;                                              \
    const char* source = data[0];                                         \
    char* target = data[1];                                               \
    SAD_UNUSED;                                                           \
    for (i = 0; i < n; i++, source += strides[0], target += strides[1]) { \
      TYPE a = *(TYPE*)source;                                            \
      *(TYPE*)target = EXPR;                                              \
    }                                                                     \
    return 0;                                                             \
  }
#define SAD_SHORT(CODE, TYPE)               \
  SAD_SHORT_BINARY(add, CODE, TYPE, +)      \
  SAD_SHORT_BINARY(subtract, CODE, TYPE, -) \
  SAD_SHORT_BINARY(multiply, CODE, TYPE, *) \
  SAD_SHORT_BINARY(divide, CODE, TYPE, /)   \
  SAD_SHORT_UNARY(negative, CODE, TYPE, -a) \
  SAD_SHORT_UNARY(square, CODE, TYPE, a* a)
SAD_SHORT(f32, float)
SAD_SHORT(f64, double)

#include "casts.h"

/* The table by name, for _loops.pyx. */
typedef struct {
  const char* name;
  sad_loop loop;
} sad_named_loop;

/* clang-format off */
#define SAD_ROW(NAME) {#NAME, sad_##NAME},
#define SAD_SHORT_ROWS(CODE)                                                     \
  SAD_ROW(short_add_##CODE) SAD_ROW(short_subtract_##CODE)                       \
  SAD_ROW(short_multiply_##CODE) SAD_ROW(short_divide_##CODE)                    \
  SAD_ROW(short_negative_##CODE) SAD_ROW(short_square_##CODE)
#define SAD_SCATTER_ROW(CODE, ...) SAD_ROW(scatter_add_##CODE)

static const sad_named_loop sad_own_loops[] = {
    SAD_ROW(copy_1) SAD_ROW(copy_2) SAD_ROW(copy_4) SAD_ROW(copy_8) SAD_ROW(copy_16)
    SAD_ROW(where_1) SAD_ROW(where_2) SAD_ROW(where_4) SAD_ROW(where_8) SAD_ROW(where_16)
    SAD_ROW(mul0_f16) SAD_ROW(mul0_f32) SAD_ROW(mul0_f64) SAD_ROW(mul0_c64) SAD_ROW(mul0_c128)
    SAD_ROW(gather) SAD_ROW(take_last) SAD_ROW(scatter) SAD_ROW(check_exponent) SAD_ROW(check_indices)
    SAD_TYPES(SAD_SCATTER_ROW)
    SAD_SHORT_ROWS(f32) SAD_SHORT_ROWS(f64)
    SAD_CAST_ROWS
    {NULL, NULL}};
/* clang-format on */

#endif
