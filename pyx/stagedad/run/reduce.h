/*
** reduce.h - sums, as accurate along every axis as NumPy's of a contiguous copy.
**
** Note [order of sums]: NumPy sums a contiguous row pairwise (Higham 1993): up to
** 128 items in 8 lanes, which are joined by pairs and followed by the items that
** fill no round; more are halved at a multiple of 8 and the halves added.  So the
** error grows with the logarithm of the count.  Its sums over other axes do not
** have that order.  Here all have: the items of one sum, in the order of their
** indices, are added as `np.sum` of their contiguous copy adds them, bit for bit.
** Whether they lie along an axis (sum_along), across rows (sum_across), or come
** piece by piece (sum_all within a block) changes the way, not the order.
**
** extremum: (source, target) by the binary loop that `context` points to;
** strides[2] is the size of an item; dims as for sum_all.
*/
#ifndef STAGEDAD_RUN_REDUCE_H
#define STAGEDAD_RUN_REDUCE_H

#include "axes.h"
#include "loops.h"

/* Of a tree of sums over as many items as there can be. */
#define SAD_MOST_LEVELS 60
/* ORDER STREAM: as in stagedad/plan/reducing.py. */
#define SAD_STREAM_BYTES 2048

#define SAD_PLAIN_PLUS(a, b) ((a) + (b))

#define NAME(x) x##_f32
#define R float
#define PARTS 1
#define PLUS SAD_PLAIN_PLUS
#include "sum_loops.h"

#define NAME(x) x##_f64
#define R double
#define PARTS 1
#define PLUS SAD_PLAIN_PLUS
#include "sum_loops.h"

#define NAME(x) x##_c64
#define R float
#define PARTS 2
#define PLUS SAD_PLAIN_PLUS
#include "sum_loops.h"

#define NAME(x) x##_c128
#define R double
#define PARTS 2
#define PLUS SAD_PLAIN_PLUS
#include "sum_loops.h"

/* Integers wrap, signed ones too, so one loop serves both; booleans say whether any is. */
#define SAD_WRAPPED_PLUS(a, b) (R)((a) + (b))
#define SAD_OR(a, b) (R)(((a) | (b)) != 0)

#define NAME(x) x##_u8
#define R uint8_t
#define PARTS 1
#define PLUS SAD_WRAPPED_PLUS
#define ANY_ORDER
#include "sum_loops.h"

#define NAME(x) x##_u16
#define R uint16_t
#define PARTS 1
#define PLUS SAD_WRAPPED_PLUS
#define ANY_ORDER
#include "sum_loops.h"

#define NAME(x) x##_u32
#define R uint32_t
#define PARTS 1
#define PLUS SAD_WRAPPED_PLUS
#define ANY_ORDER
#include "sum_loops.h"

#define NAME(x) x##_u64
#define R uint64_t
#define PARTS 1
#define PLUS SAD_WRAPPED_PLUS
#define ANY_ORDER
#include "sum_loops.h"

#define NAME(x) x##_b1
#define R uint8_t
#define PARTS 1
#define PLUS SAD_OR
#define ANY_ORDER
#include "sum_loops.h"

static int sad_extremum(SAD_ARGS) {
  const sad_kernel* kernel = (const sad_kernel*)context;
  char* operands[3] = {data[1], data[0], data[1]};
  npy_intp steps[3] = {0, strides[0], 0};
  (void)auxdata;

  if (dims[2] == 0) memcpy(data[1], data[0], (size_t)strides[2]);
  return kernel->loop(kernel->context, operands, dims, steps, kernel->auxdata);
}

#define SAD_SUM_ROWS(CODE)                                                                  \
  {"sum_along_" #CODE, sad_sum_along_##CODE}, {"sum_across_" #CODE, sad_sum_across_##CODE}, \
      {"sum_all_" #CODE, sad_sum_all_##CODE},

static const sad_named_loop sad_reductions[] = {
    SAD_SUM_ROWS(b1) SAD_SUM_ROWS(u8) SAD_SUM_ROWS(u16) SAD_SUM_ROWS(u32) SAD_SUM_ROWS(u64)
        SAD_SUM_ROWS(f32) SAD_SUM_ROWS(f64) SAD_SUM_ROWS(c64) SAD_SUM_ROWS(c128){NULL, NULL}};

#endif
