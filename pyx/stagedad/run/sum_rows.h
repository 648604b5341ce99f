/*
** sum_rows.h - the sum of many rows, as accurate as a pairwise sum.
*/
#ifndef STAGEDAD_RUN_SUM_ROWS_H
#define STAGEDAD_RUN_SUM_ROWS_H

#include "loops.h"

/* Rows that are added one after the other; more are halved first. */
#define SAD_FEW_ROWS 8

typedef struct {
  char* at;
  npy_intp step;
} sad_row; /* of elements `step` bytes apart */

static int sad_add_row(const sad_kernel* add, npy_intp n, sad_row left, sad_row right,
                       sad_row sum) {
  char* data[3] = {left.at, right.at, sum.at};
  npy_intp strides[3] = {left.step, right.step, sum.step};
  return add->loop(add->context, data, &n, strides, add->auxdata);
}

/* sum = rows of n elements from `first` on, `apart` bytes from one to the next. */
static int sad_add_rows(const sad_kernel* add, npy_intp n, sad_row first, npy_intp rows,
                        npy_intp apart, sad_row sum, sad_row scratch, npy_intp scratch_apart) {
  sad_row next = first, deeper = scratch;

  if (rows > SAD_FEW_ROWS) {
    npy_intp half = rows / 2;
    next.at += half * apart;
    deeper.at += scratch_apart;
    if (sad_add_rows(add, n, first, half, apart, sum, scratch, scratch_apart) != 0 ||
        sad_add_rows(add, n, next, rows - half, apart, scratch, deeper, scratch_apart) != 0) {
      return -1;
    }
    return sad_add_row(add, n, sum, scratch, sum);
  }
  next.at += apart;
  if (sad_add_row(add, n, first, next, sum) != 0) return -1;
  for (rows -= 2; rows > 0; rows--) {
    next.at += apart;
    if (sad_add_row(add, n, sum, next, sum) != 0) return -1;
  }
  return 0;
}

/*
** sum_rows: (source, scratch, target), target = the sum of two or more rows,
** added by the elementwise loop that `context` points to.  dims: rows, row
** length, tile.  strides: from row to row, from element to element, between
** scratch rows of one tile, between elements of the target.
**
** Halving keeps the error at the logarithm of the rows (Higham 1993, pairwise
** summation) and makes the order a matter of shape alone.  Column tiles keep the
** partial sums in cache; the scratch holds one tile a level.
*/
static int sad_sum_rows(SAD_ARGS) {
  npy_intp rows = dims[0], n = dims[1], tile = dims[2], start;
  sad_row scratch = {data[1], strides[2] / tile};
  (void)auxdata;

  for (start = 0; start < n; start += tile) {
    npy_intp count = n - start < tile ? n - start : tile;
    sad_row first = {data[0] + start * strides[1], strides[1]};
    sad_row sum = {data[2] + start * strides[3], strides[3]};
    if (sad_add_rows((const sad_kernel*)context, count, first, rows, strides[0], sum, scratch,
                     strides[2]) != 0) {
      return -1;
    }
  }
  return 0;
}

#endif
