//===- MathFunctions.cpp - exponentials, logarithms, error function -------===//
//
// Sources of the methods: argument reduction by Cody and Waite, the logarithm by atanh of (m - 1) / (m + 1),
// log1p by Kahan's quotient; polynomials in MathCoefficients.h.
//
//===----------------------------------------------------------------------===//
#include "MathFunctions.h"

#include "MathCoefficients.h"

using namespace mlir;
using namespace ajour::coefficients;

namespace ajour::functions {

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double log2E = 1.4426950408889634074;
constexpr double ln2 = 0.69314718055994530942;
} // namespace

/// Computes an f32 term by way of f64.
template <typename Function> static Term throughDouble(Function function, Term x) {
  return FloatBuilder::isDouble(x) ? function(x) : x.builder->toSingle(function(x.builder->toDouble(x)));
}

/// Nearest integer of x * scale, |it| < 2^22: as a float, and as an integer of x's width. The bits of the
/// sum give the integer, also for NaN, where a conversion would be undefined.
static std::pair<Term, Term> nearestInteger(Term x, double scale) {
  const bool wide = FloatBuilder::isDouble(x);
  const double magic = wide ? 0x1.8p52 : 0x1.8p23;
  Term sum = fma(x, scale, magic);
  Term integer = subInt(x.builder->bits(sum), x.builder->bits(x.builder->constantLike(x, magic)));
  return {sum - magic, integer};
}

/// 2^k for an integer k in the range of normal numbers.
static Term powerOfTwo(Term k) {
  const bool wide = FloatBuilder::width(k) == 64;
  return k.builder->fromBits(shiftLeft(addInt(k, wide ? 1023 : 127), wide ? 52 : 23));
}

/// x * 2^k in two steps, so that results near overflow and below the normal numbers come out right.
static Term scaleBy(Term x, Term k) {
  Term half = shiftRight(k, 1);
  return x * powerOfTwo(half) * powerOfTwo(subInt(k, half));
}

/// e^r - 1 for |r| <= ln(2) / 2.
static Term expm1Core(Term r) {
  Term p = FloatBuilder::isDouble(r) ? polynomial(r, expDouble) : polynomial(r, expSingle);
  return fma(r * r, p, r);
}

/// x limited to [low, high]; NaN stays.
static Term clamp(Term x, double low, double high) {
  x = select(x < low, low, x);
  return select(x > high, high, x);
}

/// x = k ln(2) + r.
static std::pair<Term, Term> reduceExp(Term x) {
  auto [k, integer] = nearestInteger(x, log2E);
  const bool wide = FloatBuilder::isDouble(x);
  Term r = fma(k, wide ? -0.6931471805599453 : -0.6931471824645996, x);
  r = fma(k, wide ? -2.3190468138462996e-17 : 1.904654299957768e-09, r);
  return {integer, r};
}

Term exp(Term x) {
  const bool wide = FloatBuilder::isDouble(x);
  auto [k, r] = reduceExp(clamp(x, wide ? -746 : -104, wide ? 710 : 89));
  return scaleBy(1.0 + expm1Core(r), k);
}

Term exp2(Term x) {
  const bool wide = FloatBuilder::isDouble(x);
  x = clamp(x, wide ? -1080 : -151, wide ? 1025 : 129);
  auto [k, integer] = nearestInteger(x, 1.0);
  return scaleBy(1.0 + expm1Core((x - k) * ln2), integer);
}

Term expm1(Term x) {
  const bool wide = FloatBuilder::isDouble(x);
  auto [k, r] = reduceExp(clamp(x, wide ? -40 : -20, wide ? 709.8 : 88.8));
  // 2^k (e^r - 1) + (2^k - 1) with half of 2^k, which does not overflow.
  Term half = powerOfTwo(addInt(k, -1));
  Term result = 2.0 * fma(half, expm1Core(r), half - 0.5);
  // Exact for tiny x, and keeps the sign of zero.
  return select(abs(x) < (wide ? 1e-17 : 1e-9), x, result);
}

namespace {
/// log(x) = exponent ln(2) + f - (square - s (square + rest)), square = f^2 / 2.
struct LogParts {
  Term exponent, f, square, s, rest;
};
} // namespace

static LogParts reduceLog(Term x) {
  FloatBuilder &builder = *x.builder;
  const bool wide = FloatBuilder::isDouble(x);
  const int64_t one = wide ? 0x3ff0000000000000 : 0x3f800000;
  const int64_t rootHalf = wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  const int mantissa = wide ? 52 : 23;
  // Numbers below the normal ones are scaled up first.
  Term tiny = x < (wide ? 0x1p-1022 : 0x1p-126);
  Term scaled = select(tiny, x * (wide ? 0x1p54 : 0x1p25), x);
  Term bits = addInt(builder.bits(scaled), one - rootHalf);
  Term k = addInt(shiftRightZero(bits, mantissa), wide ? -1023 : -127);
  Term m = builder.fromBits(addInt(andInt(bits, (int64_t(1) << mantissa) - 1), rootHalf));
  if (wide) // a conversion from 32 bits exists at every level
    k = builder.cast<arith::TruncIOp>(k, builder.ir.getI32Type());
  Type element = getElementTypeOrSelf(x.value.getType());
  Term exponent = builder.cast<arith::SIToFPOp>(k, element);
  exponent = select(tiny, exponent - (wide ? 54 : 25), exponent);
  Term f = m - 1.0;
  Term s = f / (2.0 + f);
  Term z = s * s;
  Term rest = z * (wide ? polynomial(z, logDouble) : polynomial(z, logSingle));
  return {exponent, f, 0.5 * f * f, s, rest};
}

/// The values of any logarithm outside (0, infinity).
static Term logSpecial(Term x, Term result) {
  result = select(x == infinity, infinity, result);
  result = select(x == 0.0, -infinity, result);
  result = select(x < 0.0, std::numeric_limits<double>::quiet_NaN(), result);
  return select(isNaN(x), x, result);
}

Term log(Term x) {
  const bool wide = FloatBuilder::isDouble(x);
  LogParts p = reduceLog(x);
  Term low = fma(p.exponent, wide ? 2.3190468138462996e-17 : -1.904654299957768e-09, p.s * (p.square + p.rest));
  return logSpecial(x, fma(p.exponent, wide ? 0.6931471805599453 : 0.6931471824645996, p.f - (p.square - low)));
}

static Term logToBase(Term x, double scale, double exponentScale) {
  LogParts p = reduceLog(x);
  Term mantissa = p.f - (p.square - p.s * (p.square + p.rest));
  return logSpecial(x, fma(mantissa, scale, p.exponent * exponentScale));
}

Term log2(Term x) { return logToBase(x, log2E, 1.0); }

Term log10(Term x) { return logToBase(x, 0.43429448190325182765, 0.30102999566398119521); }

Term log1p(Term x) {
  Term u = 1.0 + x;
  Term result = log(u) * (x / (u - 1.0));
  result = select(u == 1.0, x, result);
  return select(x == infinity, x, result);
}

Term tanh(Term x) {
  const bool wide = FloatBuilder::isDouble(x);
  Term a = abs(x);
  if (wide) {
    Term t = expm1(-2.0 * a);
    return copysign(-t / (t + 2.0), x);
  }
  Term z = x * x;
  Term small = fma(x * z, polynomial(z, tanhSingle), x);
  Term large = 1.0 - 2.0 / (exp(2.0 * select(a > 10.0, 10.0, a)) + 1.0);
  return copysign(select(a < 0.625, small, large), x);
}

/// erfc(a) for a >= 1/2.
static Term erfcTail(Term a) {
  a = select(a > 28.0, 28.0, a);
  Term t = 2.0 / (2.0 + a);
  // a^2 = high + low, because its rounding error is magnified by the exponential.
  Term high = a * a, low = fma(a, a, -high);
  return exp(-high) * (1.0 - low) * t * polynomial(fma(t, 2.5, -1.0), erfcScaled);
}

Term erf(Term x) {
  const bool wide = FloatBuilder::isDouble(x);
  Term a = abs(x), z = x * x;
  Term small = x * (wide ? polynomial(z, erfDouble) : polynomial(z, erfSingle));
  Term large = wide ? 1.0 - erfcTail(a) : 1.0 - exp(polynomial(select(a > 4.0, 4.0, a), logErfcSingle));
  return select(a < 1.0, small, copysign(large, x));
}

Term erfc(Term x) {
  return throughDouble(
      [](Term x) {
        Term a = abs(x);
        Term small = 1.0 - x * polynomial(x * x, erfDouble);
        Term tail = erfcTail(a);
        return select(a < 0.5, small, select(x < 0.0, 2.0 - tail, tail));
      },
      x);
}

Term rsqrt(Term x) { return 1.0 / sqrt(x); }

Term sinh(Term x) {
  return throughDouble(
      [](Term x) {
        Term a = abs(x), t = expm1(a), h = exp(0.5 * a);
        return copysign(select(a > 40.0, 0.5 * h * h, 0.5 * (t + t / (t + 1.0))), x);
      },
      x);
}

Term cosh(Term x) {
  return throughDouble(
      [](Term x) {
        Term a = abs(x), e = exp(a), h = exp(0.5 * a);
        return select(a > 40.0, 0.5 * h * h, 0.5 * e + 0.5 / e);
      },
      x);
}

Term asinh(Term x) {
  return throughDouble(
      [](Term x) {
        Term a = abs(x), square = a * a;
        Term near = log1p(a + square / (1.0 + sqrt(square + 1.0)));
        return copysign(select(a > 1e10, log(a) + ln2, near), x);
      },
      x);
}

Term acosh(Term x) {
  return throughDouble(
      [](Term x) {
        Term t = x - 1.0;
        Term result = select(x > 1e10, log(x) + ln2, log1p(t + sqrt(t * (t + 2.0))));
        return select(x < 1.0, std::numeric_limits<double>::quiet_NaN(), result);
      },
      x);
}

Term atanh(Term x) {
  return throughDouble(
      [](Term x) {
        Term a = abs(x);
        return copysign(0.5 * log1p(2.0 * a / (1.0 - a)), x);
      },
      x);
}

Term cbrt(Term x) {
  return throughDouble(
      [](Term x) {
        Term a = abs(x);
        Term y = exp2(log2(a) / 3.0);
        y = y - (y - a / (y * y)) / 3.0; // one Newton step
        Term ordinary = (a > 0.0) & (a < infinity);
        return select(ordinary, copysign(y, x), x);
      },
      x);
}

/// |x|^y for f64, and what C says about negative x.
static Term powDouble(Term x, Term y) {
  Term a = abs(x), l = log2(a);
  // 1^infinity is 1.
  Term magnitude = exp2(select(l == 0.0, 0.0, y * l));
  Term half = 0.5 * y;
  Term integral = floor(y) == y;
  Term odd = integral & (floor(half) != half);
  Term result = select(odd, copysign(magnitude, x), magnitude);
  Term undefined = (x < 0.0) & (a < infinity) & (floor(y) != y);
  result = select(undefined | isNaN(x) | isNaN(y), std::numeric_limits<double>::quiet_NaN(), result);
  return select((y == 0.0) | (x == 1.0), 1.0, result);
}

Term pow(Term x, Term y) {
  if (FloatBuilder::isDouble(x))
    return powDouble(x, y);
  return x.builder->toSingle(powDouble(x.builder->toDouble(x), x.builder->toDouble(y)));
}

Term powInt(Term x, Term n) {
  FloatBuilder &builder = *x.builder;
  Term y = builder.cast<arith::SIToFPOp>(n, builder.ir.getF64Type());
  Term result = powDouble(builder.toDouble(x), y);
  return FloatBuilder::isDouble(x) ? result : builder.toSingle(result);
}

Term integerPower(Term base, Term exponent) {
  FloatBuilder &builder = *base.builder;
  Type type = base.value.getType();
  Term one = builder.intConstant(type, 1), zero = builder.intConstant(type, 0);
  auto equals = [&](Term a, Term b) { return builder.compare(arith::CmpIPredicate::eq, a, b); };
  Term result = one, square = base, rest = exponent;
  for (unsigned i = 0; i < FloatBuilder::width(base); ++i) {
    Term bit = andInt(rest, 1);
    result = builder.binary<arith::MulIOp>(result, select(isZeroInt(bit), one, square));
    square = builder.binary<arith::MulIOp>(square, square);
    rest = shiftRightZero(rest, 1);
  }
  // Negative exponents: 1 and -1 have inverses, which the loop's parity gives; all else truncates to 0.
  Term minusOne = builder.intConstant(type, -1);
  Term unit = equals(base, one) | equals(base, minusOne);
  Term negative = builder.compare(arith::CmpIPredicate::slt, exponent, zero);
  Term parity = select(isZeroInt(andInt(exponent, 1)), one, base);
  return select(negative, select(unit, parity, zero), result);
}

} // namespace ajour::functions
