//===- MathTest.cpp - elementary functions against libm -------------------===//
#include "Harness.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>

using namespace ajour;
using namespace ajour::test;

namespace {

using Function = long double (*)(long double, long double);

struct Case {
  const char *op;
  int operands;
  double low, high;   // range of the first operand (and of the second)
  double ulps;        // allowed error for f32
  Function reference;
};

void PrintTo(const Case &row, std::ostream *stream) { *stream << row.op; }

#define ONE(expression) [](long double x, long double) -> long double { return expression; }
#define TWO(expression) [](long double x, long double y) -> long double { return expression; }

const Case cases[] = {
    {"math.exp", 1, -110, 95, 2, ONE(expl(x))},
    {"math.exp2", 1, -155, 130, 2, ONE(exp2l(x))},
    {"math.expm1", 1, -20, 90, 3, ONE(expm1l(x))},
    {"math.log", 1, 0, 100, 2, ONE(logl(x))},
    {"math.log2", 1, 0, 100, 3, ONE(log2l(x))},
    {"math.log10", 1, 0, 100, 3, ONE(log10l(x))},
    {"math.log1p", 1, -1, 10, 4, ONE(log1pl(x))},
    {"math.tanh", 1, -12, 12, 3, ONE(tanhl(x))},
    {"math.erf", 1, -5, 5, 3, ONE(erfl(x))},
    {"math.erfc", 1, -5, 10, 1, ONE(erfcl(x))},
    {"math.sin", 1, -1000, 1000, 1, ONE(sinl(x))},
    {"math.cos", 1, -1000, 1000, 1, ONE(cosl(x))},
    {"math.tan", 1, -1000, 1000, 1, ONE(tanl(x))},
    {"math.asin", 1, -1.1, 1.1, 1, ONE(asinl(x))},
    {"math.acos", 1, -1.1, 1.1, 1, ONE(acosl(x))},
    {"math.atan", 1, -50, 50, 1, ONE(atanl(x))},
    {"math.atan2", 2, -50, 50, 1, TWO(atan2l(x, y))},
    {"math.sinh", 1, -95, 95, 1, ONE(sinhl(x))},
    {"math.cosh", 1, -95, 95, 1, ONE(coshl(x))},
    {"math.asinh", 1, -1000, 1000, 1, ONE(asinhl(x))},
    {"math.acosh", 1, 0.5, 1000, 1, ONE(acoshl(x))},
    {"math.atanh", 1, -1.1, 1.1, 1, ONE(atanhl(x))},
    {"math.sqrt", 1, -1, 1000, 0.51, ONE(sqrtl(x))},
    {"math.rsqrt", 1, -1, 1000, 2, ONE(1 / sqrtl(x))},
    {"math.cbrt", 1, -1000, 1000, 1, ONE(cbrtl(x))},
    {"math.powf", 2, -20, 20, 1, TWO(powl(x, y))},
    {"math.floor", 1, -100, 100, 0, ONE(floorl(x))},
    {"math.ceil", 1, -100, 100, 0, ONE(ceill(x))},
    {"math.round", 1, -100, 100, 0, ONE(roundl(x))},
    {"math.roundeven", 1, -100, 100, 0, ONE(rintl(x))},
    {"math.trunc", 1, -100, 100, 0, ONE(truncl(x))},
    {"math.absf", 1, -100, 100, 0, ONE(fabsl(x))},
    {"math.copysign", 2, -100, 100, 0, TWO(copysignl(x, y))},
    {"arith.remf", 2, -1000, 1000, 0, TWO(fmodl(x, y))},
    {"arith.maximumf", 2, -100, 100, 0, TWO(std::isnan(x) || std::isnan(y) ? NAN : fmaxl(x, y))},
    {"arith.minnumf", 2, -100, 100, 0, TWO(fminl(x, y))},
};

/// A dispatch @f: buffers x, y, result; `type` may be a vector, then an item is one vector.
std::string moduleText() {
  return R"(
func.func @f(%buffers: !llvm.ptr, %dims: !llvm.ptr, %scratch: !llvm.ptr, %begin: i64, %end: i64) {
  %a = llvm.load %buffers : !llvm.ptr -> !llvm.ptr
  %pb = llvm.getelementptr %buffers[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %b = llvm.load %pb : !llvm.ptr -> !llvm.ptr
  %pc = llvm.getelementptr %buffers[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %c = llvm.load %pc : !llvm.ptr -> !llvm.ptr
  %one = arith.constant 1 : i64
  scf.for %i = %begin to %end step %one : i64 {
    %qa = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, TYPE
    %qb = llvm.getelementptr %b[%i] : (!llvm.ptr, i64) -> !llvm.ptr, TYPE
    %qc = llvm.getelementptr %c[%i] : (!llvm.ptr, i64) -> !llvm.ptr, TYPE
    %x = llvm.load %qa {alignment = 1} : !llvm.ptr -> TYPE
    %y = llvm.load %qb {alignment = 1} : !llvm.ptr -> TYPE
    %z = OP TYPE
    llvm.store %z, %qc {alignment = 1} : TYPE, !llvm.ptr
  }
  return
})";
}

std::string instantiate(const Case &row, const std::string &type) {
  std::string text = moduleText();
  auto replace = [&](const std::string &from, const std::string &to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replace("OP", std::string(row.op) + (row.operands == 2 ? " %x, %y :" : " %x :"));
  replace("TYPE", type);
  return text;
}

template <typename T> std::vector<T> specials() {
  using L = std::numeric_limits<T>;
  std::vector<T> values = {0,         T(-0.0), 1,        -1,           2,   -2,           3,       -3,         T(0.5),
                           T(-0.5),   T(1.5),  T(2.5),   T(-2.5),      7,   100,          -100,    T(1e-3),    T(-1e-3),
                           L::min(),  -L::min(), L::max(), L::lowest(), L::infinity(), -L::infinity(), L::quiet_NaN(),
                           L::denorm_min(), -L::denorm_min(), L::min() / 4, L::epsilon(), T(1e-9), T(-1e-9), T(1e9),
                           T(1e30),  T(-1e30), T(0.99999), T(1.00001)};
  return values;
}

/// Operands: all pairs of special values, then random ones, uniform and of all magnitudes.
template <typename T> void fillOperands(const Case &row, std::vector<T> &x, std::vector<T> &y, size_t count) {
  for (T a : specials<T>())
    for (T b : specials<T>())
      x.push_back(a), y.push_back(b);
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(row.low, row.high), logarithm(-37, 37);
  while (x.size() < count) {
    bool wild = random() % 4 == 0;
    auto draw = [&] {
      return T(wild ? std::copysign(std::pow(10.0, logarithm(random)), double(int64_t(random()))) : uniform(random));
    };
    x.push_back(draw());
    y.push_back(random() % 4 == 0 ? T(int64_t(random() % 21) - 10) : draw());
  }
}

/// Distance in units of the last place of the reference in T (of the smallest normal number below it).
template <typename T> double distance(T found, long double expected) {
  if (std::isnan(expected) || std::isnan(found))
    return std::isnan(expected) && std::isnan(found) ? 0 : INFINITY;
  T rounded = T(expected);
  if (found == rounded)
    return std::isinf(found) || std::signbit(found) == std::signbit(rounded) || expected != 0 ? 0 : INFINITY;
  if (std::isinf(found) || std::isinf(rounded)) {
    // Next to overflow a neighbour may be infinite.
    T other = std::isinf(found) ? rounded : found;
    return std::fabs(other) > std::numeric_limits<T>::max() * T(0.99999) ? 1 : INFINITY;
  }
  long double unit = std::ldexp(1.0L, std::max(std::ilogb(rounded), std::numeric_limits<T>::min_exponent - 1) -
                                          (std::numeric_limits<T>::digits - 1));
  return double(std::fabs((long double)found - expected) / unit);
}

bool isAngle(const Case &row) {
  std::string op = row.op;
  return op == "math.sin" || op == "math.cos" || op == "math.tan";
}

template <typename T>
void check(Session &session, const Case &row, ajour_cpu_level level, const std::string &type, double allowed,
           size_t count, size_t lanes) {
  auto code = session.emit(instantiate(row, type), level);
  ASSERT_TRUE(succeeded(code)) << row.op << " " << type << ": " << session.takeErrors();
  Loaded loaded(code->sharedObject);
  std::vector<T> x, y;
  fillOperands(row, x, y, count);
  x.resize(x.size() / lanes * lanes), y.resize(x.size());
  std::vector<T> z(x.size());
  void *buffers[] = {x.data(), y.data(), z.data()};
  loaded.find("f")(buffers, nullptr, nullptr, 0, int64_t(x.size() / lanes));
  double worst = 0;
  size_t place = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (isAngle(row) && std::fabs(x[i]) > 1e9)
      continue;
    long double expected = row.reference(x[i], y[i]);
    // Which zero minnum takes of two is open.
    double error = std::string(row.op) == "arith.minnumf" && z[i] == 0 && expected == 0 ? 0 : distance(z[i], expected);
    if (error > worst)
      worst = error, place = i;
  }
  EXPECT_LE(worst, allowed) << row.op << " " << type << " (" << double(x[place]) << ", " << double(y[place])
                            << ") = " << double(z[place]) << ", expected "
                            << double(row.reference(x[place], y[place]));
  if (getenv("AJOUR_TEST_ERRORS"))
    printf("%-16s %-12s %.2f ulp\n", row.op, type.c_str(), worst);
}

class Math : public testing::TestWithParam<Case> {};

TEST_P(Math, SingleIsCloseToLibm) {
  Session session;
  ajour_cpu_level level = runnableLevels().back();
  check<float>(session, GetParam(), level, "f32", GetParam().ulps, 100000, 1);
  check<float>(session, GetParam(), level, "vector<8xf32>", GetParam().ulps, 20000, 8);
}

TEST_P(Math, DoubleIsCloseToLibm) {
  Session session;
  // 1e-12 relative is 4503 units of the last place; the functions are better.
  double allowed = GetParam().ulps < 1 ? GetParam().ulps : std::string(GetParam().op) == "math.powf" ? 4000 : 64;
  check<double>(session, GetParam(), runnableLevels().back(), "f64", allowed, 30000, 1);
}

TEST_P(Math, EveryLevelAndTypeIsSelfContained) {
  Session session;
  for (const CpuLevelInfo &level : cpuLevels())
    for (const char *type : {"f32", "f16", "bf16", "f64", "vector<8xf16>", "vector<8xbf16>", "vector<3xf64>"}) {
      if (level.level == AJOUR_LEVEL_avx512vnni || level.level == AJOUR_LEVEL_avx512vbmi || level.level == AJOUR_LEVEL_dotprod || level.level == AJOUR_LEVEL_i8mm)
        continue; // no float instruction differs from the level before
      CpuEmitOptions options;
      options.optimization = 1;
      auto code = session.emit(instantiate(GetParam(), type), level.level, options);
      EXPECT_TRUE(succeeded(code)) << level.name << " " << type << ": " << session.takeErrors();
    }
}

INSTANTIATE_TEST_SUITE_P(Functions, Math, testing::ValuesIn(cases), [](const testing::TestParamInfo<Case> &info) {
  std::string name = info.param.op;
  return name.substr(name.find('.') + 1);
});

} // namespace
