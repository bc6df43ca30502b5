//===- Peak.cpp - How fast this machine multiplies and adds ---------------===//

#include "ToolSupport/Peak.h"
#include "ajour/ABI/CpuFeatures.h"
#include "ajour/ajour.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace ajour::tools {

namespace {

/// One loop: `run` goes round `rounds` times, each with `macs` multiply-accumulates.
struct PeakLoop {
  const char *instruction;
  uint64_t features;
  uint64_t macs;
  void (*run)(uint64_t rounds);
};

// Twelve sums at once: enough to hide the latency of a multiply-add on two units, and they fit into 16 registers with their factors.
#define AJOUR_TWELVE(STEP) STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9) STEP(10) STEP(11)
// With 32 registers there is room for four units.
#define AJOUR_TWENTY(STEP) AJOUR_TWELVE(STEP) STEP(12) STEP(13) STEP(14) STEP(15) STEP(16) STEP(17) STEP(18) STEP(19)
/// Makes the compiler believe that a register changed, and that it is needed.
#define AJOUR_OPAQUE(kind, value) __asm__ volatile("" : "+" kind(value))

#if defined(__x86_64__)

__attribute__((target("avx2,fma"))) void runFmaAvx2(uint64_t rounds) {
  __m256 a = _mm256_set1_ps(1.0f), b = _mm256_set1_ps(0.5f);
#define DECLARE(i) __m256 s##i = _mm256_setzero_ps();
#define STEP(i) s##i = _mm256_fmadd_ps(a, b, s##i);
#define KEEP(i) AJOUR_OPAQUE("x", s##i);
  AJOUR_TWELVE(DECLARE)
  for (uint64_t round = 0; round < rounds; ++round) {
    AJOUR_TWELVE(STEP)
    AJOUR_TWELVE(KEEP)
  }
#undef DECLARE
#undef STEP
#undef KEEP
}

__attribute__((target("avx512f"))) void runFmaAvx512(uint64_t rounds) {
  __m512 a = _mm512_set1_ps(1.0f), b = _mm512_set1_ps(0.5f);
#define DECLARE(i) __m512 s##i = _mm512_setzero_ps();
#define STEP(i) s##i = _mm512_fmadd_ps(a, b, s##i);
#define KEEP(i) AJOUR_OPAQUE("v", s##i);
  AJOUR_TWELVE(DECLARE)
  for (uint64_t round = 0; round < rounds; ++round) {
    AJOUR_TWELVE(STEP)
    AJOUR_TWELVE(KEEP)
  }
#undef DECLARE
#undef STEP
#undef KEEP
}

__attribute__((target("avx2"))) void runMaddAvx2(uint64_t rounds) {
  __m256i a = _mm256_set1_epi16(3), b = _mm256_set1_epi16(-5);
#define DECLARE(i) __m256i s##i = _mm256_setzero_si256();
// The factor seems to change, so that each product is computed anew.
#define STEP(i)                                                                                                        \
  AJOUR_OPAQUE("x", a);                                                                                                \
  s##i = _mm256_add_epi32(s##i, _mm256_madd_epi16(a, b));
#define KEEP(i) AJOUR_OPAQUE("x", s##i);
  AJOUR_TWELVE(DECLARE)
  for (uint64_t round = 0; round < rounds; ++round) {
    AJOUR_TWELVE(STEP)
    AJOUR_TWELVE(KEEP)
  }
#undef DECLARE
#undef STEP
#undef KEEP
}

__attribute__((target("avx512f,avx512bw"))) void runMaddAvx512(uint64_t rounds) {
  __m512i a = _mm512_set1_epi16(3), b = _mm512_set1_epi16(-5);
#define DECLARE(i) __m512i s##i = _mm512_setzero_si512();
#define STEP(i)                                                                                                        \
  AJOUR_OPAQUE("v", a);                                                                                                \
  s##i = _mm512_add_epi32(s##i, _mm512_madd_epi16(a, b));
#define KEEP(i) AJOUR_OPAQUE("v", s##i);
  AJOUR_TWELVE(DECLARE)
  for (uint64_t round = 0; round < rounds; ++round) {
    AJOUR_TWELVE(STEP)
    AJOUR_TWELVE(KEEP)
  }
#undef DECLARE
#undef STEP
#undef KEEP
}

__attribute__((target("avx512f,avx512vnni"))) void runVnniAvx512(uint64_t rounds) {
  __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-5);
#define DECLARE(i) __m512i s##i = _mm512_setzero_si512();
#define STEP(i) s##i = _mm512_dpbusd_epi32(s##i, a, b);
#define KEEP(i) AJOUR_OPAQUE("v", s##i);
  AJOUR_TWELVE(DECLARE)
  for (uint64_t round = 0; round < rounds; ++round) {
    AJOUR_TWELVE(STEP)
    AJOUR_TWELVE(KEEP)
  }
#undef DECLARE
#undef STEP
#undef KEEP
}

// Best first.
const PeakLoop f32Loops[] = {{"vfmadd (512 bits)", AJOUR_CPU_AVX512F, 12 * 16, runFmaAvx512},
                             {"vfmadd (256 bits)", AJOUR_CPU_AVX2 | AJOUR_CPU_FMA, 12 * 8, runFmaAvx2}};
const PeakLoop int8Loops[] = {
    {"vpdpbusd (512 bits)", AJOUR_CPU_AVX512F | AJOUR_CPU_AVX512VNNI, 12 * 64, runVnniAvx512},
    {"vpmaddwd, vpaddd (512 bits)", AJOUR_CPU_AVX512F | AJOUR_CPU_AVX512BW, 12 * 32, runMaddAvx512},
    {"vpmaddwd, vpaddd (256 bits)", AJOUR_CPU_AVX2, 12 * 16, runMaddAvx2}};

#elif defined(__aarch64__)

void runFmla(uint64_t rounds) {
  float32x4_t a = vdupq_n_f32(1.0f), b = vdupq_n_f32(0.5f);
#define DECLARE(i) float32x4_t s##i = vdupq_n_f32(0);
#define STEP(i) s##i = vfmaq_f32(s##i, a, b);
#define KEEP(i) AJOUR_OPAQUE("w", s##i);
  AJOUR_TWENTY(DECLARE)
  for (uint64_t round = 0; round < rounds; ++round) {
    AJOUR_TWENTY(STEP)
    AJOUR_TWENTY(KEEP)
  }
#undef DECLARE
#undef STEP
#undef KEEP
}

void runSmlal(uint64_t rounds) {
  int16x4_t a = vdup_n_s16(3), b = vdup_n_s16(-5);
#define DECLARE(i) int32x4_t s##i = vdupq_n_s32(0);
#define STEP(i) s##i = vmlal_s16(s##i, a, b);
#define KEEP(i) AJOUR_OPAQUE("w", s##i);
  AJOUR_TWENTY(DECLARE)
  for (uint64_t round = 0; round < rounds; ++round) {
    AJOUR_TWENTY(STEP)
    AJOUR_TWENTY(KEEP)
  }
#undef DECLARE
#undef STEP
#undef KEEP
}

__attribute__((target("arch=armv8.2-a+dotprod"))) void runSdot(uint64_t rounds) {
  int8x16_t a = vdupq_n_s8(3), b = vdupq_n_s8(-5);
#define DECLARE(i) int32x4_t s##i = vdupq_n_s32(0);
#define STEP(i) s##i = vdotq_s32(s##i, a, b);
#define KEEP(i) AJOUR_OPAQUE("w", s##i);
  AJOUR_TWENTY(DECLARE)
  for (uint64_t round = 0; round < rounds; ++round) {
    AJOUR_TWENTY(STEP)
    AJOUR_TWENTY(KEEP)
  }
#undef DECLARE
#undef STEP
#undef KEEP
}

__attribute__((target("arch=armv8.2-a+i8mm"))) void runSmmla(uint64_t rounds) {
  int8x16_t a = vdupq_n_s8(3), b = vdupq_n_s8(-5);
#define DECLARE(i) int32x4_t s##i = vdupq_n_s32(0);
#define STEP(i) s##i = vmmlaq_s32(s##i, a, b);
#define KEEP(i) AJOUR_OPAQUE("w", s##i);
  AJOUR_TWENTY(DECLARE)
  for (uint64_t round = 0; round < rounds; ++round) {
    AJOUR_TWENTY(STEP)
    AJOUR_TWENTY(KEEP)
  }
#undef DECLARE
#undef STEP
#undef KEEP
}

// Best first.
const PeakLoop f32Loops[] = {{"fmla (128 bits)", AJOUR_CPU_NEON, 20 * 4, runFmla}};
const PeakLoop int8Loops[] = {{"smmla", AJOUR_CPU_NEON | AJOUR_CPU_I8MM, 20 * 32, runSmmla},
                              {"sdot", AJOUR_CPU_NEON | AJOUR_CPU_DOTPROD, 20 * 16, runSdot},
                              {"smlal", AJOUR_CPU_NEON, 20 * 4, runSmlal}};

#else

const PeakLoop f32Loops[] = {{"none", ~0ull, 0, nullptr}};
const PeakLoop int8Loops[] = {{"none", ~0ull, 0, nullptr}};

#endif

template <size_t N> const PeakLoop *firstThatRuns(const PeakLoop (&loops)[N]) {
  for (const PeakLoop &loop : loops)
    if ((loop.features & ~ajour_cpu_feature_bits()) == 0)
      return &loop;
  return nullptr;
}

const PeakLoop *loopFor(PeakKind kind) {
  return kind == PeakKind::F32 ? firstThatRuns(f32Loops) : firstThatRuns(int8Loops);
}

using Clock = std::chrono::steady_clock;

double secondsFor(const PeakLoop &loop, uint64_t rounds) {
  Clock::time_point start = Clock::now();
  loop.run(rounds);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

} // namespace

const char *peakInstruction(PeakKind kind) {
  const PeakLoop *loop = loopFor(kind);
  return loop ? loop->instruction : "none";
}

double measurePeak(PeakKind kind, uint32_t threads) {
  const PeakLoop *loop = loopFor(kind);
  if (!loop)
    return 0;
  constexpr int tries = 10;
  constexpr double secondsPerTry = 0.003;
  // The first rounds also let the clock settle.
  constexpr uint64_t trial = 20000;
  double seconds = std::max(std::min(secondsFor(*loop, trial), secondsFor(*loop, trial)), 1e-6);
  uint64_t rounds = std::clamp<uint64_t>(static_cast<uint64_t>(trial * secondsPerTry / seconds), 1, uint64_t(1) << 32);
  // Threads meet before each try, which lasts until the slowest one is done, as a dispatch that all share.
  std::atomic<uint32_t> arrived{0};
  struct Span {
    Clock::time_point start, end;
  };
  std::vector<std::vector<Span>> spans(threads, std::vector<Span>(tries));
  auto work = [&](uint32_t thread) {
    for (uint32_t i = 0; i < tries; ++i) {
      arrived.fetch_add(1);
      while (arrived.load() < (i + 1) * threads)
        std::this_thread::yield();
      spans[thread][i].start = Clock::now();
      loop->run(rounds);
      spans[thread][i].end = Clock::now();
    }
  };
  std::vector<std::thread> workers;
  for (uint32_t thread = 1; thread < threads; ++thread)
    workers.emplace_back(work, thread);
  work(0);
  for (std::thread &worker : workers)
    worker.join();
  double best = 0;
  for (int i = 0; i < tries; ++i) {
    Span all = spans[0][i];
    for (const std::vector<Span> &own : spans)
      all = {std::min(all.start, own[i].start), std::max(all.end, own[i].end)};
    double operations = 2 * static_cast<double>(loop->macs) * static_cast<double>(rounds) * threads;
    best = std::max(best, 1e-9 * operations / std::chrono::duration<double>(all.end - all.start).count());
  }
  return best;
}

} // namespace ajour::tools
