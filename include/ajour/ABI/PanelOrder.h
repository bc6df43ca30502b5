/* The order of columns in a panel of sparse weights: what packing writes and the kernels' accumulators have. */
#ifndef AJOUR_ABI_PANELORDER_H
#define AJOUR_ABI_PANELORDER_H

#include <stdint.h>

/* Which of a panel's groups of `share` columns a lane has: the order in which interleaving accumulators leaves them. */
static inline int64_t ajour_gemm_sparse_group(int64_t lane, int64_t lanes, int64_t share) {
  if (share == 1)
    return lane;
  if (share == 2)
    return lane % 4 / 2 * (lanes / 2) + lane / 4 * 2 + lane % 2;
  return lane % 4 * (lanes / 4) + lane / 4;
}

#endif
