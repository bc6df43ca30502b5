//===- Trigonometry.cpp - angles, and the exact remainder -----------------===//
#include "MathCoefficients.h"
#include "MathFunctions.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ajour::coefficients;

namespace ajour::functions {

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double halfPi = 1.5707963267948966;
constexpr double halfPiLow = 6.123233995736766e-17;
constexpr double pi = 3.1415926535897932385;
} // namespace

template <typename Function> static Term throughDouble(Function function, Term x) {
  return FloatBuilder::isDouble(x) ? function(x) : x.builder->toSingle(function(x.builder->toDouble(x)));
}

namespace {
/// x = quadrant pi/2 + r: sin(r), cos(r) and the quadrant as an integer.
struct Angle {
  Term sine, cosine, quadrant;
};
} // namespace

static Angle reduceAngle(Term x) {
  Term sum = fma(x, 1.0 / halfPi, 0x1.8p52);
  Term k = sum - 0x1.8p52;
  Term r = fma(k, 1.4973849048591698e-33, fma(k, -halfPiLow, fma(k, -halfPi, x)));
  // Angles too large to reduce stay harmless.
  r = select(r > 0.8, 0.8, r);
  r = select(r < -0.8, -0.8, r);
  Term z = r * r;
  Term sine = fma(r * z, polynomial(z, sinDouble), r);
  Term cosine = fma(z * z, polynomial(z, cosDouble), fma(z, -0.5, 1.0));
  return {sine, cosine, x.builder->bits(sum)};
}

/// The value of one of the four quadrants: swaps sine and cosine in odd ones, changes the sign in the upper.
static Term fromQuadrant(Term even, Term odd, Term quadrant) {
  Term value = select(isZeroInt(andInt(quadrant, 1)), even, odd);
  return select(isZeroInt(andInt(quadrant, 2)), value, -value);
}

Term sin(Term x) {
  return throughDouble(
      [](Term x) {
        Angle angle = reduceAngle(x);
        return select(x == 0.0, x, fromQuadrant(angle.sine, angle.cosine, angle.quadrant));
      },
      x);
}

Term cos(Term x) {
  return throughDouble(
      [](Term x) {
        Angle angle = reduceAngle(x);
        // cos: +c, -s, -c, +s. The sign bit of the quadrant after the next is the one wanted.
        Term value = select(isZeroInt(andInt(angle.quadrant, 1)), angle.cosine, angle.sine);
        return select(isZeroInt(andInt(addInt(angle.quadrant, 1), 2)), value, -value);
      },
      x);
}

Term tan(Term x) {
  return throughDouble(
      [](Term x) {
        Angle angle = reduceAngle(x);
        Term even = angle.sine / angle.cosine, odd = -angle.cosine / angle.sine;
        return select(x == 0.0, x, select(isZeroInt(andInt(angle.quadrant, 1)), even, odd));
      },
      x);
}

/// asin(x) for |x| <= 1/2.
static Term asinCore(Term x) {
  Term z = x * x;
  return fma(x * z, polynomial(z, asinDouble), x);
}

Term asin(Term x) {
  return throughDouble(
      [](Term x) {
        Term a = abs(x);
        Term outer = halfPi - (2.0 * asinCore(sqrt(0.5 * (1.0 - a))) - halfPiLow);
        return select(a < 0.5, asinCore(x), copysign(outer, x));
      },
      x);
}

Term acos(Term x) {
  return throughDouble(
      [](Term x) {
        Term a = abs(x);
        Term outer = 2.0 * asinCore(sqrt(0.5 * (1.0 - a)));
        outer = select(x < 0.0, pi - outer, outer);
        return select(a < 0.5, halfPi - (asinCore(x) - halfPiLow), outer);
      },
      x);
}

static Term atanDoubleTerm(Term x) {
  Term a = abs(x);
  Term large = a > 2.4142135623730950488, medium = a > 0.41421356237309504880;
  Term t = select(large, -1.0 / a, select(medium, (a - 1.0) / (a + 1.0), a));
  Term base = select(large, halfPi, select(medium, 0.5 * halfPi, t * 0.0));
  Term low = select(large, halfPiLow, select(medium, 0.5 * halfPiLow, t * 0.0));
  Term z = t * t;
  Term result = base + (fma(t * z, polynomial(z, atanDouble), low) + t);
  return copysign(result, x);
}

Term atan(Term x) { return throughDouble(atanDoubleTerm, x); }

Term atan2(Term y, Term x) {
  FloatBuilder &builder = *x.builder;
  const bool wide = FloatBuilder::isDouble(x);
  Term v = builder.toDouble(y), h = builder.toDouble(x);
  Term av = abs(v), ah = abs(h);
  Term steep = av > ah;
  Term small = select(steep, ah, av), big = select(steep, av, ah);
  Term ratio = small / big;
  ratio = select(big == 0.0, 0.0, ratio);
  ratio = select((small == infinity) & (big == infinity), 1.0, ratio);
  Term angle = atanDoubleTerm(ratio);
  angle = select(steep, halfPi - angle, angle);
  Term negative = builder.compare(arith::CmpIPredicate::slt, builder.bits(h),
                                  builder.intConstant(builder.bits(h).value.getType(), 0));
  angle = select(negative, pi - angle, angle);
  Term result = copysign(wide ? angle : builder.toSingle(angle), y);
  return select(isNaN(x) | isNaN(y), std::numeric_limits<double>::quiet_NaN(), result);
}

/// One step of the long division: removes up to 50 bits of the quotient a / b.
static Term reduceOnce(Term a, Term b) {
  Term exponentA = shiftRightZero(a.builder->bits(a), 52), exponentB = shiftRightZero(b.builder->bits(b), 52);
  Term shift = addInt(subInt(exponentA, exponentB), -50);
  Term zero = a.builder->intConstant(shift.value.getType(), 0);
  shift = a.builder->binary<arith::MaxSIOp>(shift, zero);
  Term divisor = a.builder->fromBits(addInt(a.builder->bits(b), shiftLeft(shift, 52)));
  // The rounded quotient may be one too large; the difference is exact in both cases.
  Term r = fma(-trunc(a / divisor), divisor, a);
  return select(r < 0.0, r + divisor, r);
}

Term remainder(Term x, Term y) {
  FloatBuilder &builder = *x.builder;
  const bool wide = FloatBuilder::isDouble(x);
  Term a = abs(builder.toDouble(x)), b = abs(builder.toDouble(y));
  // Steps of 50 bits for quotients below 2^277 (f32) or 2^2098 (f64).
  ImplicitLocOpBuilder &ir = builder.ir;
  Value zero = arith::ConstantIndexOp::create(ir, 0), one = arith::ConstantIndexOp::create(ir, 1);
  Value steps = arith::ConstantIndexOp::create(ir, wide ? 42 : 6);
  auto loop = scf::ForOp::create(ir, zero, steps, one, ValueRange{a.value},
                                 [&](OpBuilder &inner, Location location, Value, ValueRange carried) {
                                   FloatBuilder body(inner, location);
                                   Term r = reduceOnce(body.term(carried[0]), body.term(b.value));
                                   scf::YieldOp::create(inner, location, r.value);
                                 });
  Term r = builder.term(loop.getResult(0));
  r = select(b == infinity, a, r);
  r = select((a == infinity) | (b == 0.0) | isNaN(a) | isNaN(b), std::numeric_limits<double>::quiet_NaN(), r);
  r = copysign(r, builder.toDouble(x));
  return wide ? r : builder.toSingle(r);
}

} // namespace ajour::functions
