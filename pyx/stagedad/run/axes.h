/*
** axes.h - walking over several axes of an array, the last one fastest.
**
** Axes come as words: how many; for each, its extent and one stride an operand.
*/
#ifndef STAGEDAD_RUN_AXES_H
#define STAGEDAD_RUN_AXES_H

#include <numpy/npy_common.h>

/* One more than NumPy allows an array. */
#define SAD_MOST_AXES 65

/* Goes through the elements of one operand, a run of equal steps at a time. */
typedef struct {
  const npy_intp* axes; /* extent and stride of each */
  npy_intp ndim;
  const char* at;
  npy_intp step; /* of the last axis */
  npy_intp left; /* of the last axis, from `at` on */
  npy_intp index[SAD_MOST_AXES];
} sad_walk;

/* Start at the first element.  `words` are axes with one stride; there is at least one. */
static void sad_walk_from(sad_walk* walk, const char* at, const npy_intp* words) {
  npy_intp d;

  walk->axes = words + 1;
  walk->ndim = words[0];
  walk->at = at;
  walk->left = walk->axes[2 * (walk->ndim - 1)];
  walk->step = walk->axes[2 * (walk->ndim - 1) + 1];
  for (d = 0; d < walk->ndim; d++) walk->index[d] = 0;
}

/* Go `count` elements on, at most `left`. */
static inline void sad_walk_on(sad_walk* walk, npy_intp count) {
  npy_intp d;

  walk->at += count * walk->step;
  walk->left -= count;
  if (walk->left > 0) return;
  d = walk->ndim - 1;
  walk->left = walk->axes[2 * d];
  walk->at -= walk->left * walk->step;
  for (d--; d >= 0; d--) {
    walk->at += walk->axes[2 * d + 1];
    if (++walk->index[d] < walk->axes[2 * d]) return;
    walk->at -= walk->axes[2 * d] * walk->axes[2 * d + 1];
    walk->index[d] = 0;
  }
}

/*
** Goes over all but the last of the axes of two operands; the caller takes the
** last in a loop of its own.  Returns 0 when it has been everywhere.
*/
typedef struct {
  const npy_intp* axes; /* extent and two strides of each */
  npy_intp outer;
  npy_intp index[SAD_MOST_AXES];
} sad_pair_walk;

static void sad_pair_from(sad_pair_walk* walk, const npy_intp* words) {
  npy_intp d;

  walk->axes = words + 1;
  walk->outer = words[0] - 1;
  for (d = 0; d < walk->outer; d++) walk->index[d] = 0;
}

static inline int sad_pair_next(sad_pair_walk* walk, const char** first, char** second) {
  npy_intp d;

  for (d = walk->outer - 1; d >= 0; d--) {
    const npy_intp* axis = walk->axes + 3 * d;
    *first += axis[1];
    *second += axis[2];
    if (++walk->index[d] < axis[0]) return 1;
    *first -= axis[0] * axis[1];
    *second -= axis[0] * axis[2];
    walk->index[d] = 0;
  }
  return 0;
}

#endif
