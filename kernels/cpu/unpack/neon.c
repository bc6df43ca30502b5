#include "../Kernel.h"

typedef float ajour_unpack_entries_neon __attribute__((ext_vector_type(16), aligned(4)));
typedef uint32_t ajour_unpack_indices_neon __attribute__((ext_vector_type(16), aligned(1), may_alias));

AJOUR_HELPER AJOUR_TARGET_neon ajour_unpack_entries_neon ajour_unpack_look_up_neon(const float *table, const int64_t bits,
                                                                                   ajour_unpack_indices_neon indices) {
  ajour_unpack_entries_neon x;
  (void)bits;
  AJOUR_UNROLL
  for (int64_t i = 0; i < 16; ++i)
    x[i] = table[indices[i]];
  return x;
}

#define SUFFIX neon
#define TARGET AJOUR_TARGET_neon
#include "unpack.inc"
