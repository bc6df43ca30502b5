/* Several blocks of a matrix-vector product in one call.
 *
 * One stream of addresses keeps a core's memory system less busy than it could be: hardware prefetching starts anew with each page.
 * So the kernels of quantised weights and an 8-bit lhs (gemv_q2 to gemv_q8, see Kernels.h) take, for one token,
 * AJOUR_GEMV_STREAMS blocks at once if their flags say so:
 *   block b < AJOUR_GEMV_STREAMS: values at rhs + b * stride bytes, lhs at lhs + b * ldm (0: the same for all), results at acc + 16 * b;
 *   scales and sums of the lhs are the same for all.
 */
#ifndef AJOUR_KERNELS_GEMVBLOCKS_H
#define AJOUR_KERNELS_GEMVBLOCKS_H

#include <stdint.h>

#define AJOUR_GEMV_STREAMS 4
#define AJOUR_GEMV_MANY_BLOCKS 16 /* a flag; the stride stands in bits 32 to 62 */

/* Flags for AJOUR_GEMV_STREAMS blocks; 0 <= stride < 2^31. */
static inline int64_t ajour_gemv_many_blocks(int64_t flags, int64_t stride) {
  return flags | AJOUR_GEMV_MANY_BLOCKS | stride << 32;
}
/* The flags of one of the blocks, and what lies between them. */
static inline int64_t ajour_gemv_one_block(int64_t flags) { return flags & 0xFFFFFFFF & ~(int64_t)AJOUR_GEMV_MANY_BLOCKS; }
static inline int64_t ajour_gemv_stride(int64_t flags) { return flags >> 32; }

#endif
