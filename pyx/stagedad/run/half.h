/*
** half.h - IEEE binary16 to and from binary64, one rounding, ties to even.
**
** A number that overflows or loses bits as a subnormal raises its flag, as NumPy's
** conversions do.  Plain bit work: `_Float16` needs newer compilers than NumPy asks for, and
** libnpymath would have to be linked.
*/
#ifndef STAGEDAD_RUN_HALF_H
#define STAGEDAD_RUN_HALF_H

#include <stdint.h>
#include <string.h>

#include "flags.h"

static inline double sad_half_to_double(uint16_t half) {
  uint64_t sign = (uint64_t)(half & 0x8000u) << 48;
  uint32_t exponent = (half >> 10) & 0x1fu;
  uint64_t fraction = half & 0x3ffu;
  uint64_t bits;
  double value;

  if (exponent == 0) { /* zero or subnormal: fraction * 2^-24 is exact */
    value = (double)fraction * (1.0 / 16777216.0);
    memcpy(&bits, &value, 8);
    bits |= sign;
  } else if (exponent == 31) {
    bits = sign | 0x7ff0000000000000u | (fraction << 42);
  } else {
    bits = sign | ((uint64_t)(exponent + 1008) << 52) | (fraction << 42);
  }
  memcpy(&value, &bits, 8);
  return value;
}

static inline uint16_t sad_half_from_double(double value) {
  uint64_t bits;
  uint16_t sign;
  int exponent;
  uint64_t fraction, kept, rest, half;
  int shift;

  memcpy(&bits, &value, 8);
  sign = (uint16_t)((bits >> 48) & 0x8000u);
  exponent = (int)((bits >> 52) & 0x7ff) - 1023;
  fraction = bits & 0x000fffffffffffffu;

  if (exponent == 1024) { /* inf, or a nan that keeps the top of its payload */
    if (fraction == 0) return sign | 0x7c00u;
    kept = fraction >> 42;
    return sign | 0x7c00u | (uint16_t)(kept ? kept : 1);
  }
  if (exponent > 15) {
    sad_fp_raise(SAD_OVER);
    return sign | 0x7c00u;
  }
  if (exponent < -25) {
    if (exponent != -1023 || fraction != 0) sad_fp_raise(SAD_UNDER);
    return sign;
  }

  fraction |= (uint64_t)1 << 52;
  shift = exponent < -14 ? 42 + (-14 - exponent) : 42;
  kept = fraction >> shift;
  rest = fraction & (((uint64_t)1 << shift) - 1);
  half = (uint64_t)1 << (shift - 1);
  if (rest > half || (rest == half && (kept & 1))) kept++;
  /* A carry out of the fraction moves into the exponent, up to inf: as it should. */
  if (exponent < -14) {
    if (rest != 0) sad_fp_raise(SAD_UNDER);
    return sign | (uint16_t)kept;
  }
  kept += (uint64_t)(exponent + 14) << 10;
  if (kept >= 0x7c00u) sad_fp_raise(SAD_OVER);
  return sign | (uint16_t)kept;
}

#endif
