/* Attention of several key and value heads in one call.
 *
 * A row of a cache holds all heads of a position. For few tokens the time goes into reading it, and memory is fastest read in order, so the
 * kernels (ajour_attention_f32_fn, see Kernels.h) take `groups` neighbouring key and value heads at once if `heads` says so:
 *   heads = ajour_attention_heads(heads of a group, groups);
 *   query head h of group g stands at query + t * query_stride + (g * heads + h) * size, its result at result + t * result_stride +
 *   (g * heads + h) * width, its slope, sink and mask at number g * heads + h;
 *   the keys (values) of group g lie directly behind those of group g - 1 in a row, and so do their scales.
 * scratch: ajour_attention_groups_scratch floats.
 */
#ifndef AJOUR_KERNELS_ATTENTIONHEADS_H
#define AJOUR_KERNELS_ATTENTIONHEADS_H

#include <stdint.h>

#include "ajour/Kernels/Kernels.h"

/* Most rows (tokens times heads of a group) for which groups cost less together than one by one: their keys and values are not packed. */
#define AJOUR_ATTENTION_FEW_ROWS 8

static inline int64_t ajour_attention_heads(int64_t heads, int64_t groups) { return heads | (groups - 1) << 32; }
static inline int64_t ajour_attention_heads_of_group(int64_t heads) { return heads & 0xFFFFFFFF; }
static inline int64_t ajour_attention_groups(int64_t heads) { return (heads >> 32) + 1; }

/* rows: tokens times heads of a group. */
static inline int64_t ajour_attention_groups_scratch(int64_t rows, int64_t groups, int64_t size, int64_t width) {
  return ajour_attention_scratch(rows * groups, size, width) + rows * groups * (AJOUR_ATTENTION_BLOCK + 2);
}

#endif
