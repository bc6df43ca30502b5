//===- MathFunctions.h - elementary functions as expressions --*- C++ -*-===//
#ifndef AJOUR_LIB_TARGET_CPU_MATHFUNCTIONS_H
#define AJOUR_LIB_TARGET_CPU_MATHFUNCTIONS_H

#include "FloatBuilder.h"

/// Elementary functions of f32 and f64 terms, branch-free, with IEEE special values. Those marked "single"
/// compute f32 in f32 (within about 2 ulp); the others compute f32 by way of f64. f64 results have a
/// relative error below 1e-12, mostly a few ulp. Angles of sin, cos and tan may be up to 2^50 in
/// magnitude; beyond that the result lies in [-1, 1] (sin, cos) and means nothing.
namespace ajour::functions {

Term exp(Term x);   // single
Term exp2(Term x);  // single
Term expm1(Term x); // single
Term log(Term x);   // single
Term log2(Term x);  // single
Term log10(Term x); // single
Term log1p(Term x); // single
Term tanh(Term x);  // single
Term erf(Term x);   // single
Term rsqrt(Term x); // single
Term erfc(Term x);
Term sin(Term x);
Term cos(Term x);
Term tan(Term x);
Term asin(Term x);
Term acos(Term x);
Term atan(Term x);
Term atan2(Term y, Term x);
Term sinh(Term x);
Term cosh(Term x);
Term asinh(Term x);
Term acosh(Term x);
Term atanh(Term x);
Term cbrt(Term x);
/// As C's pow in every special case.
Term pow(Term x, Term y);
/// x^n for a signed integer n of at most 32 bits.
Term powInt(Term x, Term n);
/// As C's fmod: exact, with the sign of x.
Term remainder(Term x, Term y);
/// Base to the power of a signed exponent, modulo 2^width; for negative exponents the truncated quotient.
Term integerPower(Term base, Term exponent);

} // namespace ajour::functions

#endif
