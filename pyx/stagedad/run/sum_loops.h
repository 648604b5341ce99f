/*
** sum_loops.h - sums of one type, in NumPy's order; included once a type.
**
** The includer defines NAME(x) (x with the type's code), R and PARTS (an item is
** so many numbers R), PLUS(a, b) of two numbers, and ANY_ORDER where the order of
** additions makes no difference.  See reduce.h for the order.
*/

/* Items of a round: eight numbers, one a lane. */
#define LANES (8 / PARTS)
#define LEAF (128 / PARTS)

typedef struct {
  R part[PARTS];
} NAME(sad_item);
#define T NAME(sad_item)

static inline T NAME(sad_plus)(T a, T b) {
  int p;
  for (p = 0; p < PARTS; p++) a.part[p] = PLUS(a.part[p], b.part[p]);
  return a;
}

/* NumPy starts from zero, so that a sum is never -0. */
static inline void NAME(sad_store)(char* target, T sum) {
  T zero = {{0}};
  *(T*)target = NAME(sad_plus)(zero, sum);
}

/* A half of n items, as NumPy halves: whole rounds of eight numbers. */
static inline npy_intp NAME(sad_half)(npy_intp n) {
  npy_intp numbers = n * PARTS / 2;
  return (numbers - numbers % 8) / PARTS;
}

/* One number of each lane, joined by pairs. */
#if PARTS == 1
#define JOINED(lane)                                         \
  PLUS(PLUS(PLUS(lane(0), lane(1)), PLUS(lane(2), lane(3))), \
       PLUS(PLUS(lane(4), lane(5)), PLUS(lane(6), lane(7))))
#else
#define JOINED(lane) PLUS(PLUS(lane(0), lane(1)), PLUS(lane(2), lane(3)))
#endif

static inline T NAME(sad_joined)(const R* lanes) {
  T sum;
  int p;
#define LANE(j) lanes[(j) * PARTS + p]
  for (p = 0; p < PARTS; p++) sum.part[p] = JOINED(LANE);
#undef LANE
  return sum;
}

/* Add rounds of n numbers or items to the lanes. */
static inline void NAME(sad_add_dense)(R* lanes, const R* number, npy_intp n) {
  npy_intp i;
  int j;
  for (i = 0; i < n; i += 8) {
    for (j = 0; j < 8; j++) lanes[j] = PLUS(lanes[j], number[i + j]);
  }
}

static inline void NAME(sad_add_strided)(R* lanes, const char* at, npy_intp step, npy_intp n) {
  npy_intp i;
  int j, p;
  for (i = 0; i < n; i += LANES) {
    for (j = 0; j < LANES; j++, at += step) {
      for (p = 0; p < PARTS; p++) {
        lanes[j * PARTS + p] = PLUS(lanes[j * PARTS + p], ((const R*)at)[p]);
      }
    }
  }
}

/* The sum of 1 to LEAF items. */
static inline T NAME(sad_leaf)(const char* at, npy_intp step, npy_intp n) {
  npy_intp i, rounds = n - n % LANES;
  int j, p;
  T sum;

  if (n < LANES) {
    sum = *(const T*)at;
    i = 1;
  } else {
    R lanes[8];
    if (step == sizeof(T)) {
      memcpy(lanes, at, sizeof lanes);
      NAME(sad_add_dense)(lanes, (const R*)at + 8, (rounds - LANES) * PARTS);
    } else {
      for (j = 0; j < LANES; j++) {
        for (p = 0; p < PARTS; p++) lanes[j * PARTS + p] = ((const R*)(at + j * step))[p];
      }
      NAME(sad_add_strided)(lanes, at + LANES * step, step, rounds - LANES);
    }
    sum = NAME(sad_joined)(lanes);
    i = rounds;
  }
  for (; i < n; i++) sum = NAME(sad_plus)(sum, *(const T*)(at + i * step));
  return sum;
}

#ifdef ANY_ORDER
static T NAME(sad_tree)(const char* at, npy_intp step, npy_intp n) {
  npy_intp i;
  T sum = {{0}};

  if (step == sizeof(T)) {
    for (i = 0; i < n; i++) sum = NAME(sad_plus)(sum, ((const T*)at)[i]);
  } else {
    for (i = 0; i < n; i++, at += step) sum = NAME(sad_plus)(sum, *(const T*)at);
  }
  return sum;
}
#else
static T NAME(sad_branch)(const char* at, npy_intp step, npy_intp n) {
  npy_intp half;
  T left;

  if (n <= LEAF) return NAME(sad_leaf)(at, step, n);
  half = NAME(sad_half)(n);
  left = NAME(sad_branch)(at, step, half);
  return NAME(sad_plus)(left, NAME(sad_branch)(at + half * step, step, n - half));
}

static inline T NAME(sad_tree)(const char* at, npy_intp step, npy_intp n) {
  return n <= LEAF ? NAME(sad_leaf)(at, step, n) : NAME(sad_branch)(at, step, n);
}
#endif

/* The same over several axes: a leaf that lies in pieces is gathered first. */
static T NAME(sad_walked_tree)(sad_walk* walk, npy_intp n) {
  npy_intp half, i, k;
  T sum, items[LEAF];

  if (n > LEAF) {
    half = NAME(sad_half)(n);
    sum = NAME(sad_walked_tree)(walk, half);
    return NAME(sad_plus)(sum, NAME(sad_walked_tree)(walk, n - half));
  }
  if (walk->left >= n) {
    sum = NAME(sad_leaf)(walk->at, walk->step, n);
    sad_walk_on(walk, n);
    return sum;
  }
  for (i = 0; i < n;) {
    npy_intp run = n - i < walk->left ? n - i : walk->left;
    if (walk->step == sizeof(T)) {
      memcpy(items + i, walk->at, (size_t)run * sizeof(T));
    } else {
      for (k = 0; k < run; k++) items[i + k] = *(const T*)(walk->at + k * walk->step);
    }
    i += run;
    sad_walk_on(walk, run);
  }
  return NAME(sad_leaf)((const char*)items, sizeof(T), n);
}

/*
** sum_along: (source, target).  auxdata: the axes that stay, with strides of
** both, one at least; then those that go, with strides of the source.
*/
static int NAME(sad_sum_along)(SAD_ARGS) {
  const npy_intp *kept = (const npy_intp*)auxdata, *gone = kept + 1 + 3 * kept[0];
  const npy_intp* last = gone - 3;
  npy_intp n = 1, d, i;
  const char* source = data[0];
  char* target = data[1];
  sad_pair_walk outer;
  (void)context, (void)dims, (void)strides;

  for (d = 0; d < gone[0]; d++) n *= gone[1 + 2 * d];
  sad_pair_from(&outer, kept);
  do {
    for (i = 0; i < last[0]; i++) {
      const char* first = source + i * last[1];
      T sum;
      if (gone[0] == 1) {
        sum = NAME(sad_tree)(first, gone[2], n);
      } else {
        sad_walk walk;
        sad_walk_from(&walk, first, gone);
        sum = NAME(sad_walked_tree)(&walk, n);
      }
      NAME(sad_store)(target + i * last[2], sum);
    }
  } while (sad_pair_next(&outer, &source, &target));
  return 0;
}

/*
** Rows of n items: `sums` lie dense, the items of a row are `step` bytes apart.
** Below, OF(row) is number k of a row of numbers, AT(row) number p of its item k.
*/
#define OF(row) ((const R*)(row))[k]
#define AT(row) ((const R*)((row) + k * step))[p]
#define EACH(OF_ROWS, AT_ROWS)                                   \
  if (step == sizeof(T)) {                                       \
    SAD_IN_STEP                                                  \
    for (k = 0; k < n * PARTS; k++) sums[k] = OF_ROWS;           \
  } else {                                                       \
    for (k = 0; k < n; k++) {                                    \
      for (p = 0; p < PARTS; p++) sums[k * PARTS + p] = AT_ROWS; \
    }                                                            \
  }

static inline void NAME(sad_first_rows)(R* sums, const char* a, const char* b, npy_intp step,
                                        npy_intp n) {
  npy_intp k;
  int p;
  EACH(PLUS(OF(a), OF(b)), PLUS(AT(a), AT(b)))
}

static inline void NAME(sad_one_row)(R* sums, const char* a, npy_intp step, npy_intp n) {
  npy_intp k;
  int p;
  EACH(PLUS(sums[k], OF(a)), PLUS(sums[k * PARTS + p], AT(a)))
}

static inline void NAME(sad_four_rows)(R* sums, const char* a, const char* b, const char* c,
                                       const char* d, npy_intp step, npy_intp n) {
  npy_intp k;
  int p;
#define FOUR(sum, X) PLUS(PLUS(PLUS(PLUS(sum, X(a)), X(b)), X(c)), X(d))
  EACH(FOUR(sums[k], OF), FOUR(sums[k * PARTS + p], AT))
#undef FOUR
}

static inline void NAME(sad_join_rows)(R* sums, const char* const* row, npy_intp step,
                                       npy_intp n) {
  npy_intp k;
  int p;
#define OF_ROW(j) OF(row[j])
#define AT_ROW(j) AT(row[j])
  EACH(JOINED(OF_ROW), JOINED(AT_ROW))
#undef OF_ROW
#undef AT_ROW
}

/*
** The sums of n neighbours over `rows` rows.  `lanes` and `levels` are scratch
** of rows `tile` numbers apart.
*/
static void NAME(sad_row_tree)(sad_walk* walk, npy_intp step, npy_intp rows, npy_intp n,
                               R* sums, R* lanes, R* levels, npy_intp tile) {
  const char *row[LEAF], *lane[LANES];
  npy_intp i, rounds = rows - rows % LANES;
  int j;

  if (rows > LEAF) {
    npy_intp half = NAME(sad_half)(rows);
    NAME(sad_row_tree)(walk, step, half, n, levels, lanes, levels + tile, tile);
    NAME(sad_row_tree)(walk, step, rows - half, n, sums, lanes, levels + tile, tile);
    NAME(sad_one_row)(sums, (const char*)levels, sizeof(T), n);
    return;
  }
  for (i = 0; i < rows; i++, sad_walk_on(walk, 1)) row[i] = walk->at;
  if (rows < LANES) {
    NAME(sad_first_rows)(sums, row[0], row[1], step, n);
    rounds = 2;
  } else if (rows < 2 * LANES) {
    NAME(sad_join_rows)(sums, row, step, n);
  } else {
    for (j = 0; j < LANES; j++) {
      R* to = lanes + j * tile;
      lane[j] = (const char*)to;
      NAME(sad_first_rows)(to, row[j], row[j + LANES], step, n);
      for (i = j + 2 * LANES; i + 3 * LANES < rounds; i += 4 * LANES) {
        NAME(sad_four_rows)(to, row[i], row[i + LANES], row[i + 2 * LANES], row[i + 3 * LANES],
                            step, n);
      }
      for (; i < rounds; i += LANES) NAME(sad_one_row)(to, row[i], step, n);
    }
    NAME(sad_join_rows)(sums, lane, sizeof(T), n);
  }
  for (i = rounds; i + 3 < rows; i += 4) {
    NAME(sad_four_rows)(sums, row[i], row[i + 1], row[i + 2], row[i + 3], step, n);
  }
  for (; i < rows; i++) NAME(sad_one_row)(sums, row[i], step, n);
}

/*
** sum_across: (source, scratch, target); auxdata as for sum_along, two rows at
** least; dims[0]: how many neighbours along the last axis that stays are summed
** at a time.  The scratch has rows of that many: one a lane, one for the sums,
** and one a level of the tree.
*/
static int NAME(sad_sum_across)(SAD_ARGS) {
  const npy_intp *kept = (const npy_intp*)auxdata, *gone = kept + 1 + 3 * kept[0];
  const npy_intp* last = gone - 3;
  npy_intp tile = dims[0], rows = 1, d, start, k;
  R* lanes = (R*)data[1];
  R* sums = lanes + 8 * tile;
  const char* source = data[0];
  char* target = data[2];
  sad_pair_walk outer;
  (void)context, (void)strides;

  for (d = 0; d < gone[0]; d++) rows *= gone[1 + 2 * d];
  sad_pair_from(&outer, kept);
  do {
    for (start = 0; start < last[0]; start += tile) {
      npy_intp n = last[0] - start < tile ? last[0] - start : tile;
      sad_walk walk;
      sad_walk_from(&walk, source + start * last[1], gone);
      NAME(sad_row_tree)(&walk, last[1], rows, n, sums, lanes, sums + tile * PARTS,
                         tile * PARTS);
      for (k = 0; k < n; k++) {
        NAME(sad_store)(target + (start + k) * last[2], ((const T*)sums)[k]);
      }
    }
  } while (sad_pair_next(&outer, &source, &target));
  return 0;
}

/* A sum that is fed piece by piece: where it is in the tree. */
typedef struct {
  npy_intp leaf; /* items of the leaf it is in */
  npy_intp at;   /* how many of them it has seen */
  npy_intp depth;
  R lanes[8];
  T sum;                           /* of the leaf, from the lanes on */
  npy_intp right[SAD_MOST_LEVELS]; /* items to the right of each branch; 0: it is there */
  T left[SAD_MOST_LEVELS];
} NAME(sad_stream);

typedef char NAME(sad_stream_fits)[sizeof(NAME(sad_stream)) <= SAD_STREAM_BYTES ? 1 : -1];

static inline void NAME(sad_descend)(NAME(sad_stream) * stream, npy_intp n) {
  while (n > LEAF) {
    npy_intp half = NAME(sad_half)(n);
    stream->right[stream->depth++] = n - half;
    n = half;
  }
  stream->leaf = n;
  stream->at = 0;
}

/* A leaf has ended: its sum goes up, as far as branches are complete. */
static inline void NAME(sad_ascend)(NAME(sad_stream) * stream) {
  T sum = stream->sum;

  while (stream->depth > 0) {
    npy_intp branch = stream->depth - 1, right = stream->right[branch];
    if (right != 0) {
      stream->left[branch] = sum;
      stream->right[branch] = 0;
      NAME(sad_descend)(stream, right);
      return;
    }
    sum = NAME(sad_plus)(stream->left[branch], sum);
    stream->depth = branch;
  }
  stream->sum = sum;
}

/* Take in n more items of a leaf, one after the other. */
static void NAME(sad_feed_slowly)(NAME(sad_stream) * stream, const char* at, npy_intp step,
                                  npy_intp n) {
  npy_intp rounds = stream->leaf - stream->leaf % LANES;

  for (; n > 0; n--, at += step) {
    T item = *(const T*)at;
    npy_intp i = stream->at++;
    if (i < rounds) {
      T* lane = (T*)stream->lanes + i % LANES;
      *lane = i < LANES ? item : NAME(sad_plus)(*lane, item);
      if (i + 1 == rounds) stream->sum = NAME(sad_joined)(stream->lanes);
    } else {
      stream->sum = i == 0 ? item : NAME(sad_plus)(stream->sum, item);
    }
  }
}

static inline void NAME(sad_feed)(NAME(sad_stream) * stream, const char* at, npy_intp step,
                                  npy_intp n) {
  npy_intp rounds = stream->leaf - stream->leaf % LANES;
  npy_intp count = stream->at < rounds ? rounds - stream->at : 0;

  if (stream->at == 0 && n == stream->leaf) {
    stream->sum = NAME(sad_leaf)(at, step, n);
    stream->at = n;
    return;
  }
  /* Whole rounds, after the first one and before the lanes are joined. */
  if (count > n) count = n;
  count -= count % LANES;
  if (stream->at >= LANES && stream->at % LANES == 0 && stream->at + count < rounds) {
    if (step == sizeof(T)) {
      NAME(sad_add_dense)(stream->lanes, (const R*)at, count * PARTS);
    } else {
      NAME(sad_add_strided)(stream->lanes, at, step, count);
    }
    stream->at += count;
    at += count * step;
    n -= count;
  }
  NAME(sad_feed_slowly)(stream, at, step, n);
}

/*
** sum_all: (source, stream, target), the sum of dims[1] items, of which dims[2]
** came before these dims[0].  The stream is not looked at where these are all.
*/
static int NAME(sad_sum_all)(SAD_ARGS) {
  npy_intp n = dims[0], step = strides[0];
  NAME(sad_stream)* stream = (NAME(sad_stream)*)data[1];
  const char* at = data[0];
  SAD_UNUSED;

  if (n == dims[1]) {
    NAME(sad_store)(data[2], NAME(sad_tree)(at, step, n));
    return 0;
  }
  if (dims[2] == 0) {
    stream->depth = 0;
    NAME(sad_descend)(stream, dims[1]);
  }
  while (n > 0) {
    npy_intp room = stream->leaf - stream->at, count = n < room ? n : room;
    NAME(sad_feed)(stream, at, step, count);
    if (stream->at == stream->leaf) NAME(sad_ascend)(stream);
    at += count * step;
    n -= count;
  }
  if (dims[2] + dims[0] == dims[1]) NAME(sad_store)(data[2], stream->sum);
  return 0;
}

#undef NAME
#undef R
#undef PARTS
#undef PLUS
#undef ANY_ORDER
#undef LANES
#undef LEAF
#undef T
#undef JOINED
#undef OF
#undef AT
#undef EACH
