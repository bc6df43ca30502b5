// Small artifacts for the runtime's tests.
#ifndef AJOUR_TESTS_RUNTIME_FIXTURE_H
#define AJOUR_TESTS_RUNTIME_FIXTURE_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ajour/ABI/ArtifactHeader.h"
#include "ajour/ABI/CpuFeatures.h"
#include "ajour/ABI/Dispatch.h"
#include "ajour/Runtime/ArtifactWriter.h"
#include "ajour/ajour.h"

#if defined(__SANITIZE_ADDRESS__)
#define AJOUR_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AJOUR_TEST_ASAN 1
#endif
#endif

namespace ajour::test {

#if defined(__aarch64__)
constexpr uint32_t hostArch = AJOUR_ARCH_AARCH64, otherArch = AJOUR_ARCH_X86_64;
constexpr uint32_t lowLevel = AJOUR_LEVEL_neon, highLevel = AJOUR_LEVEL_dotprod;
constexpr uint64_t lowFeatures = AJOUR_CPU_SET_NEON, highFeatures = AJOUR_CPU_SET_DOTPROD;
constexpr const char *lowName = "neon", *highName = "dotprod", *hostName = "aarch64", *otherName = "x86-64";
#else
constexpr uint32_t hostArch = AJOUR_ARCH_X86_64, otherArch = AJOUR_ARCH_AARCH64;
constexpr uint32_t lowLevel = AJOUR_LEVEL_avx2, highLevel = AJOUR_LEVEL_avx512;
constexpr uint64_t lowFeatures = AJOUR_CPU_SET_AVX2, highFeatures = AJOUR_CPU_SET_AVX512;
constexpr const char *lowName = "avx2", *highName = "avx512", *hostName = "x86-64", *otherName = "aarch64";
#endif

using Code = std::vector<int64_t>;
inline Code constant(int64_t value) { return {AJOUR_EXPR_CONST, value}; }
inline Code symbol(int64_t index) { return {AJOUR_EXPR_DIM, index}; }
inline Code times(int64_t index, int64_t factor) {
  return {AJOUR_EXPR_DIM, index, AJOUR_EXPR_CONST, factor, AJOUR_EXPR_MUL, 0};
}
std::unique_ptr<artifact::ExprT> expr(Code code);

/// A model, its segments, and how to make a file of them.
struct TestModel {
  artifact::ModelT description;
  std::vector<std::string> segmentNames;
  std::vector<std::string> segmentBytes;

  artifact::ProgramT &program() { return *description.programs[0]; }
  uint32_t addSegment(std::string name, std::string bytes);
  uint32_t addExecutable(const std::string &code, uint32_t level);
  uint32_t addBuffer(artifact::BufferKind kind, Code size, uint32_t first = 0, uint32_t last = 0);
  uint32_t addConstant(const void *data, size_t size);
  void addInput(const std::string &name, std::vector<Code> shape, uint32_t buffer, uint32_t type = AJOUR_F32);
  void addOutput(const std::string &name, std::vector<Code> shape, uint32_t buffer, uint32_t type = AJOUR_F32);
  void addSymbol(const std::string &name, int64_t min, int64_t max, uint32_t input, uint32_t dim);
  artifact::VariantT &addVariant(artifact::DispatchT &dispatch, uint32_t level, uint64_t features, uint32_t executable,
                                 const std::string &symbol, std::vector<uint32_t> operands, Code work, Code scratch = {});
  artifact::DispatchT &addDispatch(const std::string &name, const std::string &symbol, std::vector<uint32_t> operands,
                                   Code work, Code scratch = {});
  /// The file's bytes.
  std::string bytes();
};

/// z[N,4] = (x[N,4] + y[N,4]) * w[4] with N from `min` to `max` (-1: no bound); the sum is in the arena.
/// w = 1, 2, 3, 4. Dispatches "sum" (node Add_0) and "scaled" (nodes Mul_1, Mul_2).
TestModel makeAffine(int64_t min = 0, int64_t max = 64, const std::string &code = "level0");

/// Contents of a file of compiled test code, or of any file by its path.
std::string readCode(const std::string &name);
std::string readFile(const std::string &path);
void writeFile(const std::string &path, const std::string &bytes);
std::string temporaryPath(const std::string &name);

/// Sets all checksums anew after bytes were changed.
void refreshHeader(std::string &bytes);

/// A loaded model, or the message why not.
struct Loaded {
  ajour_status_code status = AJOUR_OK;
  std::string message;
  ajour_model *model = nullptr;
  std::string bytes;
  Loaded() = default;
  Loaded(Loaded &&other) noexcept : status(other.status), message(other.message), model(other.model), bytes(std::move(other.bytes)) {
    other.model = nullptr;
  }
  ~Loaded() { ajour_model_destroy(model); }
};
Loaded loadBytes(std::string bytes, ajour_load_options options = AJOUR_INIT(ajour_load_options));

/// A session of a model; fails the test when it cannot be created.
struct Session {
  ajour_session *handle = nullptr;
  explicit Session(ajour_model *model, uint32_t threads = 1, uint32_t flags = 0);
  Session(const Session &) = delete;
  ~Session() { ajour_session_destroy(handle); }
  ajour_status_code set(uint32_t index, const std::vector<float> &values, std::vector<int64_t> shape);
  std::vector<float> output(uint32_t index = 0);
};

/// Expects a status and a part of this thread's message.
#define EXPECT_STATUS(call, expected, part)                                                                            \
  do {                                                                                                                 \
    EXPECT_EQ(call, expected) << ajour_last_message();                                                                 \
    EXPECT_NE(std::string(ajour_last_message()).find(part), std::string::npos) << ajour_last_message();                \
  } while (false)
#define ASSERT_DONE(call) ASSERT_EQ(call, AJOUR_OK) << ajour_last_message()

/// Rows of four values: value(i) = start + i * step.
std::vector<float> ramp(int64_t rows, float start, float step);
/// What makeAffine's model computes.
std::vector<float> affine(const std::vector<float> &x, const std::vector<float> &y);

} // namespace ajour::test

#endif
