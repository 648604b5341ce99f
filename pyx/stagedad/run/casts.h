/*
** casts.h - astype between all fourteen dtypes, one loop a pair.
**
** As C converts, and so NumPy where the number fits: complex to real takes the real
** part, to bool is "not zero", an integer out of range wraps, a float out of an
** integer's range gives what the machine gives.  Included by loops.h alone.
*/

/* clang-format off */

/* A row: code and C type. */
#define SAD_TYPES(X)                                                             \
  X(b1, uint8_t) X(i8, int8_t) X(i16, int16_t) X(i32, int32_t) X(i64, int64_t)   \
  X(u8, uint8_t) X(u16, uint16_t) X(u32, uint32_t) X(u64, uint64_t)              \
  X(f16, uint16_t) X(f32, float) X(f64, double) X(c64, sad_c64) X(c128, sad_c128)

#define SAD_CASTS_FROM(X, FROM)                                                  \
  X(FROM, b1) X(FROM, i8) X(FROM, i16) X(FROM, i32) X(FROM, i64)                 \
  X(FROM, u8) X(FROM, u16) X(FROM, u32) X(FROM, u64)                             \
  X(FROM, f16) X(FROM, f32) X(FROM, f64) X(FROM, c64) X(FROM, c128)
#define SAD_CASTS(X)                                                             \
  SAD_CASTS_FROM(X, b1) SAD_CASTS_FROM(X, i8) SAD_CASTS_FROM(X, i16)             \
  SAD_CASTS_FROM(X, i32) SAD_CASTS_FROM(X, i64) SAD_CASTS_FROM(X, u8)            \
  SAD_CASTS_FROM(X, u16) SAD_CASTS_FROM(X, u32) SAD_CASTS_FROM(X, u64)           \
  SAD_CASTS_FROM(X, f16) SAD_CASTS_FROM(X, f32) SAD_CASTS_FROM(X, f64)           \
  SAD_CASTS_FROM(X, c64) SAD_CASTS_FROM(X, c128)

/* clang-format on */

/* How to read one as a C number, or its imaginary part, and how to write one. */
#define SAD_REAL_PART_b1(p) (*(const uint8_t*)(p) != 0)
#define SAD_REAL_PART_i8(p) (*(const int8_t*)(p))
#define SAD_REAL_PART_i16(p) (*(const int16_t*)(p))
#define SAD_REAL_PART_i32(p) (*(const int32_t*)(p))
#define SAD_REAL_PART_i64(p) (*(const int64_t*)(p))
#define SAD_REAL_PART_u8(p) (*(const uint8_t*)(p))
#define SAD_REAL_PART_u16(p) (*(const uint16_t*)(p))
#define SAD_REAL_PART_u32(p) (*(const uint32_t*)(p))
#define SAD_REAL_PART_u64(p) (*(const uint64_t*)(p))
#define SAD_REAL_PART_f16(p) sad_half_to_double(*(const uint16_t*)(p))
#define SAD_REAL_PART_f32(p) (*(const float*)(p))
#define SAD_REAL_PART_f64(p) (*(const double*)(p))
#define SAD_REAL_PART_c64(p) (((const sad_c64*)(p))->re)
#define SAD_REAL_PART_c128(p) (((const sad_c128*)(p))->re)

#define SAD_IMAG_PART_b1(p) 0
#define SAD_IMAG_PART_i8(p) 0
#define SAD_IMAG_PART_i16(p) 0
#define SAD_IMAG_PART_i32(p) 0
#define SAD_IMAG_PART_i64(p) 0
#define SAD_IMAG_PART_u8(p) 0
#define SAD_IMAG_PART_u16(p) 0
#define SAD_IMAG_PART_u32(p) 0
#define SAD_IMAG_PART_u64(p) 0
#define SAD_IMAG_PART_f16(p) 0
#define SAD_IMAG_PART_f32(p) 0
#define SAD_IMAG_PART_f64(p) 0
#define SAD_IMAG_PART_c64(p) (((const sad_c64*)(p))->im)
#define SAD_IMAG_PART_c128(p) (((const sad_c128*)(p))->im)

#define SAD_WRITE_b1(p, re_, im_) (*(uint8_t*)(p) = ((re_) != 0) | ((im_) != 0))
#define SAD_WRITE_i8(p, re_, im_) (*(int8_t*)(p) = (int8_t)(re_))
#define SAD_WRITE_i16(p, re_, im_) (*(int16_t*)(p) = (int16_t)(re_))
#define SAD_WRITE_i32(p, re_, im_) (*(int32_t*)(p) = (int32_t)(re_))
#define SAD_WRITE_i64(p, re_, im_) (*(int64_t*)(p) = (int64_t)(re_))
#define SAD_WRITE_u8(p, re_, im_) (*(uint8_t*)(p) = (uint8_t)(re_))
#define SAD_WRITE_u16(p, re_, im_) (*(uint16_t*)(p) = (uint16_t)(re_))
#define SAD_WRITE_u32(p, re_, im_) (*(uint32_t*)(p) = (uint32_t)(re_))
#define SAD_WRITE_u64(p, re_, im_) (*(uint64_t*)(p) = (uint64_t)(re_))
#define SAD_WRITE_f16(p, re_, im_) (*(uint16_t*)(p) = sad_half_from_double((double)(re_)))
#define SAD_WRITE_f32(p, re_, im_) (*(float*)(p) = (float)(re_))
#define SAD_WRITE_f64(p, re_, im_) (*(double*)(p) = (double)(re_))
#define SAD_WRITE_c64(p, re_, im_) \
  (((sad_c64*)(p))->re = (float)(re_), ((sad_c64*)(p))->im = (float)(im_))
#define SAD_WRITE_c128(p, re_, im_) \
  (((sad_c128*)(p))->re = (double)(re_), ((sad_c128*)(p))->im = (double)(im_))

#define SAD_SIZE(CODE, TYPE) sad_size_##CODE = sizeof(TYPE),
enum { SAD_TYPES(SAD_SIZE) sad_size_end };

/* Named loops sad_cast_FROM_TO; with steps that the compiler knows it uses vectors. */
#define SAD_CAST_LOOP(FROM, TO, STEP, INTO)                                             \
  for (i = 0; i < n; i++, source += STEP, target += INTO) {                             \
    SAD_WRITE_##TO(target, SAD_REAL_PART_##FROM(source), SAD_IMAG_PART_##FROM(source)); \
  }
#define SAD_CAST(FROM, TO)                                       \
  static int sad_cast_##FROM##_##TO(SAD_ARGS) {                  \
    npy_intp n = dims[0], step = strides[0], to = strides[1], i; \
    const char* source = data[0];                                \
    char* target = data[1];                                      \
    SAD_UNUSED;                                                  \
    if (step == sad_size_##FROM && to == sad_size_##TO) {        \
      SAD_IN_STEP                                                \
      SAD_CAST_LOOP(FROM, TO, sad_size_##FROM, sad_size_##TO)    \
    } else {                                                     \
      SAD_CAST_LOOP(FROM, TO, step, to)                          \
    }                                                            \
    return 0;                                                    \
  }
SAD_CASTS(SAD_CAST)

#define SAD_CAST_ROW(FROM, TO) {"cast_" #FROM "_" #TO, sad_cast_##FROM##_##TO},
#define SAD_CAST_ROWS SAD_CASTS(SAD_CAST_ROW)
