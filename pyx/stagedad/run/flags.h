/*
** flags.h - the floating-point exception flags of this thread.
**
** Reading them is one instruction; they are cleared before a run and looked at
** after it.  Inexact results and subnormal operands are no errors.
*/
#ifndef STAGEDAD_RUN_FLAGS_H
#define STAGEDAD_RUN_FLAGS_H

#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
/* Bits of MXCSR; the x87 unit, which fenv.h asks as well and slowly, computes nothing here. */
enum { SAD_INVALID = 0x01, SAD_DIVIDE = 0x04, SAD_OVER = 0x08, SAD_UNDER = 0x10 };
#define SAD_ALL_FLAGS (SAD_INVALID | SAD_DIVIDE | SAD_OVER | SAD_UNDER)

static inline int sad_fp_flags(void) { return (int)_mm_getcsr() & SAD_ALL_FLAGS; }
static inline void sad_fp_clear(void) {
  unsigned word = _mm_getcsr();
  if (word & SAD_ALL_FLAGS) _mm_setcsr(word & ~(unsigned)SAD_ALL_FLAGS);
}
static inline void sad_fp_raise(int flags) { _mm_setcsr(_mm_getcsr() | (unsigned)flags); }
#else
#include <fenv.h>
enum {
  SAD_INVALID = FE_INVALID,
  SAD_DIVIDE = FE_DIVBYZERO,
  SAD_OVER = FE_OVERFLOW,
  SAD_UNDER = FE_UNDERFLOW
};
#define SAD_ALL_FLAGS (SAD_INVALID | SAD_DIVIDE | SAD_OVER | SAD_UNDER)

static inline int sad_fp_flags(void) { return fetestexcept(SAD_ALL_FLAGS); }
static inline void sad_fp_clear(void) { feclearexcept(SAD_ALL_FLAGS); }
static inline void sad_fp_raise(int flags) { feraiseexcept(flags); }
#endif

#endif
