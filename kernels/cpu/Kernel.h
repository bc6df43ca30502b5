/* What every CPU micro-kernel file needs: inlining, targets and vector types.
 *
 * Kernels are freestanding C11. They call nothing that could become a library call (no memcpy of a
 * variable size), so that a compiled model has no undefined symbol.
 */
#ifndef AJOUR_KERNELS_KERNEL_H
#define AJOUR_KERNELS_KERNEL_H

#include <stdint.h>

#include "ajour/Kernels/GemvBlocks.h"
#include "ajour/Kernels/Kernels.h"

/* External, so that the symbol exists in the bitcode, and always inlined into the generated caller. */
#define AJOUR_KERNEL __attribute__((always_inline)) extern
#define AJOUR_HELPER static inline __attribute__((always_inline))

#define AJOUR_TARGET_avx2 __attribute__((target("avx2,fma,f16c,bmi2")))
#define AJOUR_TARGET_avx512 \
  __attribute__((target("avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512cd")))
#define AJOUR_TARGET_avx512vnni \
  __attribute__((target("avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vnni")))
#define AJOUR_TARGET_avx512vbmi \
  __attribute__((target("avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vnni,avx512vbmi")))
#define AJOUR_TARGET_neon
#define AJOUR_TARGET_dotprod __attribute__((target("dotprod")))
#define AJOUR_TARGET_i8mm __attribute__((target("dotprod,i8mm")))

/* Loops over tile rows and columns: unrolled away, so that accumulators become registers. */
#define AJOUR_UNROLL _Pragma("clang loop unroll(full)")
/* Loops over k or pixels: never unrolled by the optimiser, which would unroll a constant k fully. */
#define AJOUR_ROLLED _Pragma("clang loop unroll(disable) vectorize(disable)")

/* How far ahead of the loads the weights of a matrix-vector product are asked for, in bytes, and into which cache (2: the second
 * level). Further ahead, hardware prefetching has nothing left that it could find by itself. */
#define AJOUR_GEMV_PREFETCH 3072
#define AJOUR_GEMV_LOCALITY 2

#endif
