/*
** checked.h - a loop that says by the invalid flag that it failed.
**
** numpy.linalg's loops fill their result with NaN where LAPACK fails, set the
** flag, and clear it where it does not.
*/
#ifndef STAGEDAD_RUN_CHECKED_H
#define STAGEDAD_RUN_CHECKED_H

#include <fenv.h>

#include "loops.h"

/* As the loop that `context` points to; -1 if that raised the invalid flag. */
static int sad_checked(SAD_ARGS) {
  const sad_kernel* inner = (const sad_kernel*)context;
  int failed;
  (void)auxdata;

  feclearexcept(FE_INVALID);
  failed = inner->loop(inner->context, data, dims, strides, inner->auxdata);
  if (failed == 0 && fetestexcept(FE_INVALID)) failed = -1;
  feclearexcept(FE_INVALID);
  return failed;
}

#endif
