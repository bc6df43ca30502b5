/* All kernels for x86-64, as one translation unit. */
#include "copy/copy.c"
#include "gemm_8bit/avx2.c"
#include "gemm_8bit/avx512.c"
#include "gemm_8bit/avx512vnni.c"
#include "gemm_f32/avx2.c"
#include "gemm_f32/avx512.c"
