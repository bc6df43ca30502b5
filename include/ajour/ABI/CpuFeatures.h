/* CPU features that guard code variants, and the levels that the compiler emits.
 *
 * A level is a named set of features: code for a level may use all of them, and the runtime takes
 * the last level (highest row) of its architecture whose features the CPU has. `AJOUR_CPU=<level>`
 * forces one. Ids and bits are append-only because they are written into artifacts.
 */
#ifndef AJOUR_ABI_CPUFEATURES_H
#define AJOUR_ABI_CPUFEATURES_H

#include <stdint.h>

typedef enum ajour_arch {
  AJOUR_ARCH_X86_64 = 1,
  AJOUR_ARCH_AARCH64 = 2,
} ajour_arch;

/* Columns: bit, enumerator, name as LLVM writes it in a feature string. */
#define AJOUR_CPU_FEATURES(ROW)     \
  ROW(0, AVX2, "avx2")              \
  ROW(1, FMA, "fma")                \
  ROW(2, F16C, "f16c")              \
  ROW(3, AVX512F, "avx512f")        \
  ROW(4, AVX512BW, "avx512bw")      \
  ROW(5, AVX512DQ, "avx512dq")      \
  ROW(6, AVX512VL, "avx512vl")      \
  ROW(7, AVX512VNNI, "avx512vnni")  \
  ROW(8, AVX512VBMI, "avx512vbmi")  \
  ROW(9, BMI2, "bmi2")              \
  ROW(10, AVX512CD, "avx512cd")     \
  ROW(32, NEON, "neon")             \
  ROW(33, DOTPROD, "dotprod")       \
  ROW(34, I8MM, "i8mm")             \
  ROW(35, FP16, "fullfp16")

#define AJOUR_ROW(bit, name, text) static const uint64_t AJOUR_CPU_##name = (uint64_t)1 << bit;
AJOUR_CPU_FEATURES(AJOUR_ROW)
#undef AJOUR_ROW

#define AJOUR_CPU_SET_AVX2 (1ull << 0 | 1ull << 1 | 1ull << 2 | 1ull << 9)
#define AJOUR_CPU_SET_AVX512 (AJOUR_CPU_SET_AVX2 | 1ull << 3 | 1ull << 4 | 1ull << 5 | 1ull << 6 | 1ull << 10)
#define AJOUR_CPU_SET_AVX512VNNI (AJOUR_CPU_SET_AVX512 | 1ull << 7)
#define AJOUR_CPU_SET_AVX512VBMI (AJOUR_CPU_SET_AVX512VNNI | 1ull << 8)
#define AJOUR_CPU_SET_NEON (1ull << 32)
#define AJOUR_CPU_SET_DOTPROD (AJOUR_CPU_SET_NEON | 1ull << 33)
#define AJOUR_CPU_SET_I8MM (AJOUR_CPU_SET_DOTPROD | 1ull << 34)

/* Columns: id, name, architecture, feature set, LLVM CPU, LLVM feature string.
 * Within an architecture each row includes the features of the row before it. */
#define AJOUR_CPU_LEVELS(ROW)                                                                                \
  ROW(1, avx2, AJOUR_ARCH_X86_64, AJOUR_CPU_SET_AVX2, "x86-64-v3", "")                                       \
  ROW(2, avx512, AJOUR_ARCH_X86_64, AJOUR_CPU_SET_AVX512, "x86-64-v4", "")                                   \
  ROW(3, avx512vnni, AJOUR_ARCH_X86_64, AJOUR_CPU_SET_AVX512VNNI, "x86-64-v4", "+avx512vnni")                \
  ROW(4, avx512vbmi, AJOUR_ARCH_X86_64, AJOUR_CPU_SET_AVX512VBMI, "x86-64-v4", "+avx512vnni,+avx512vbmi")    \
  ROW(16, neon, AJOUR_ARCH_AARCH64, AJOUR_CPU_SET_NEON, "generic", "+neon,-sve,-sve2")                       \
  ROW(17, dotprod, AJOUR_ARCH_AARCH64, AJOUR_CPU_SET_DOTPROD, "generic", "+neon,+dotprod,-sve,-sve2")        \
  ROW(18, i8mm, AJOUR_ARCH_AARCH64, AJOUR_CPU_SET_I8MM, "generic", "+neon,+dotprod,+i8mm,-sve,-sve2")

typedef enum ajour_cpu_level {
#define AJOUR_ROW(id, name, arch, features, cpu, attrs) AJOUR_LEVEL_##name = id,
  AJOUR_CPU_LEVELS(AJOUR_ROW)
#undef AJOUR_ROW
} ajour_cpu_level;

#endif
