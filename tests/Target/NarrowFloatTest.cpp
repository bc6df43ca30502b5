//===- NarrowFloatTest.cpp - f16 and bf16 ---------------------------------===//
#include "Harness.h"

#include "llvm/ADT/APFloat.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace ajour;
using namespace ajour::test;

namespace {

/// A dispatch @f that applies `op` (with %x) to items of one type and stores another.
std::string convert(const std::string &from, const std::string &to, const std::string &op) {
  return R"(
func.func @f(%buffers: !llvm.ptr, %dims: !llvm.ptr, %scratch: !llvm.ptr, %begin: i64, %end: i64) {
  %a = llvm.load %buffers : !llvm.ptr -> !llvm.ptr
  %pc = llvm.getelementptr %buffers[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %c = llvm.load %pc : !llvm.ptr -> !llvm.ptr
  %one = arith.constant 1 : i64
  scf.for %i = %begin to %end step %one : i64 {
    %qa = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, )" +
         from + R"(
    %qc = llvm.getelementptr %c[%i] : (!llvm.ptr, i64) -> !llvm.ptr, )" +
         to + R"(
    %x = llvm.load %qa : !llvm.ptr -> )" +
         from + "\n" + op + R"(
    llvm.store %z, %qc : )" +
         to + R"(, !llvm.ptr
  }
  return
})";
}

template <typename From, typename To>
std::vector<To> run(const std::string &text, ajour_cpu_level level, std::vector<From> in) {
  Session session;
  auto code = session.emit(text, level);
  std::vector<To> out(in.size());
  if (failed(code)) {
    ADD_FAILURE() << session.takeErrors();
    return out;
  }
  Loaded loaded(code->sharedObject);
  void *buffers[] = {in.data(), out.data()};
  loaded.find("f")(buffers, nullptr, nullptr, 0, int64_t(in.size()));
  return out;
}

template <typename T> uint16_t rounded(T value, const llvm::fltSemantics &semantics) {
  llvm::APFloat x(value);
  bool lossy;
  x.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &lossy);
  return uint16_t(x.bitcastToAPInt().getZExtValue());
}

bool isNaN16(uint16_t bits, bool bfloat) {
  return bfloat ? (bits & 0x7fff) > 0x7f80 : (bits & 0x7fff) > 0x7c00;
}

template <typename T> void checkTruncation(const std::string &from, const std::string &to) {
  bool bfloat = to == "bf16";
  const llvm::fltSemantics &semantics = bfloat ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf();
  std::vector<T> in = {0, T(-0.0), INFINITY, -INFINITY, NAN, 65519, 65520, T(3.4e38), T(5.96e-8), T(2.98e-8),
                       T(1 + 0x1p-11 + 0x1p-40), T(1 + 0x1p-8), T(1 + 0x1p-8 + 0x1p-45), T(1 + 3 * 0x1p-8 - 0x1p-50)};
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> exponent(-45, 39), near(-2, 2);
  for (int i = 0; i < 30000; ++i) {
    in.push_back(T(near(random) * std::pow(10.0, i % 2 ? exponent(random) : 0)));
    // Next to a tie of the narrow type.
    double tie = 1 + (2 * double(random() % 64) + 1) * (bfloat ? 0x1p-8 : 0x1p-11);
    in.push_back(T(tie + (double(random() % 3) - 1) * (sizeof(T) == 8 ? 0x1p-40 : 0x1p-20)));
  }
  for (ajour_cpu_level level : runnableLevels()) {
    auto out = run<T, uint16_t>(convert(from, to, "%z = arith.truncf %x : " + from + " to " + to), level, in);
    for (size_t i = 0; i < in.size(); ++i) {
      if (std::isnan(in[i]))
        ASSERT_TRUE(isNaN16(out[i], bfloat));
      else
        ASSERT_EQ(out[i], rounded(in[i], semantics)) << from << " to " << to << ": " << double(in[i]);
    }
  }
}

TEST(NarrowFloat, TruncationRoundsOnce) {
  checkTruncation<float>("f32", "bf16");
  checkTruncation<double>("f64", "bf16");
  checkTruncation<float>("f32", "f16");
  checkTruncation<double>("f64", "f16");
}

TEST(NarrowFloat, ExtensionIsExact) {
  std::vector<uint16_t> in(65536);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = uint16_t(i);
  for (const char *from : {"f16", "bf16"}) {
    const llvm::fltSemantics &semantics = from[0] == 'b' ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf();
    for (ajour_cpu_level level : runnableLevels()) {
      auto out = run<uint16_t, double>(
          convert(from, "f64", std::string("%z = arith.extf %x : ") + from + " to f64"), level, in);
      for (size_t i = 0; i < in.size(); ++i) {
        llvm::APFloat x(semantics, llvm::APInt(16, in[i]));
        bool lossy;
        x.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lossy);
        if (x.isNaN())
          ASSERT_TRUE(std::isnan(out[i]));
        else
          ASSERT_EQ(out[i], x.convertToDouble()) << from << " " << i;
      }
    }
  }
}

TEST(NarrowFloat, ArithmeticRoundsEveryResult) {
  std::vector<uint16_t> in;
  for (int i = 0; i < 0x7c00; i += 3)
    in.push_back(uint16_t(i));
  auto out = run<uint16_t, uint16_t>(convert("f16", "f16", "%w = arith.mulf %x, %x : f16\n%z = arith.addf %w, %x : f16"),
                                     runnableLevels().front(), in);
  for (size_t i = 0; i < in.size(); ++i) {
    llvm::APFloat x(llvm::APFloat::IEEEhalf(), llvm::APInt(16, in[i])), y = x;
    y.multiply(x, llvm::APFloat::rmNearestTiesToEven);
    y.add(x, llvm::APFloat::rmNearestTiesToEven);
    ASSERT_EQ(out[i], uint16_t(y.bitcastToAPInt().getZExtValue())) << in[i];
  }
}

TEST(NarrowFloat, IntegersAreRoundedOnce) {
  std::vector<int32_t> in = {0, 1, -1, 255, 256, 257, 259, 65535, 65536, 16777217, 2147483647, -2147483647, 33619969};
  auto out = run<int32_t, uint16_t>(convert("i32", "bf16", "%z = arith.sitofp %x : i32 to bf16"),
                                    runnableLevels().front(), in);
  for (size_t i = 0; i < in.size(); ++i)
    EXPECT_EQ(out[i], rounded(double(in[i]), llvm::APFloat::BFloat())) << in[i];
}

} // namespace
