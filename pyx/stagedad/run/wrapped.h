/*
** wrapped.h - loops around NumPy's loops, for those that do not keep the flags.
*/
#ifndef STAGEDAD_RUN_WRAPPED_H
#define STAGEDAD_RUN_WRAPPED_H

#include "flags.h"
#include "loops.h"

/*
** sticky: the loop that `context` points to, one that clears flags: those of
** earlier instructions are kept.  NumPy's comparisons, isnan, maximum, negative
** and tanh do, some of them to hide what their vector code has raised.
*/
static int sad_sticky(SAD_ARGS) {
  const sad_kernel* kernel = (const sad_kernel*)context;
  int before = sad_fp_flags();
  int failed = kernel->loop(kernel->context, data, dims, strides, kernel->auxdata);
  (void)auxdata;
  if (before != 0) sad_fp_raise(before);
  return failed;
}

/* quiet: the loop that `context` points to, whose flags mean nothing. */
static int sad_quiet(SAD_ARGS) {
  const sad_kernel* kernel = (const sad_kernel*)context;
  int before = sad_fp_flags();
  int failed = kernel->loop(kernel->context, data, dims, strides, kernel->auxdata);
  (void)auxdata;
  sad_fp_clear();
  if (before != 0) sad_fp_raise(before);
  return failed;
}

/*
** checked: the loop that `context` points to; -1 if it raised the invalid flag.
** numpy.linalg's loops fill their result with NaN where LAPACK fails and set that
** flag, and clear it where it does not fail; the other flags mean nothing.
*/
static int sad_checked(SAD_ARGS) {
  const sad_kernel* kernel = (const sad_kernel*)context;
  int before = sad_fp_flags(), failed;
  (void)auxdata;

  sad_fp_clear();
  failed = kernel->loop(kernel->context, data, dims, strides, kernel->auxdata);
  if (failed == 0 && (sad_fp_flags() & SAD_INVALID)) failed = -1;
  sad_fp_clear();
  if (before != 0) sad_fp_raise(before);
  return failed;
}

/*
** Whether a loop clears flags, even in a call of no elements.  Core dimensions are of
** length 2, because Fourier transforms of no points fail.
*/
static int sad_clears_flags(const sad_kernel* kernel) {
  double scratch[8] = {0};
  char* data[16];
  npy_intp dims[16], strides[64];
  int before = sad_fp_flags(), after, i;

  for (i = 0; i < 16; i++) data[i] = (char*)scratch, dims[i] = 2;
  dims[0] = 0;
  for (i = 0; i < 64; i++) strides[i] = 8;
  sad_fp_raise(SAD_ALL_FLAGS);
  kernel->loop(kernel->context, data, dims, strides, kernel->auxdata);
  after = sad_fp_flags();
  sad_fp_clear();
  sad_fp_raise(before);
  return after != SAD_ALL_FLAGS;
}

#endif
