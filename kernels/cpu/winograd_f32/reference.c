/* The meaning of Winograd's transforms: the matrices of Kernels.h written out from their points, applied in double
 * precision. */
#include "../Reference.h"

#include "ajour/Kernels/Kernels.h"

/* The finite points: 0, 1, -1 or 0, a, -a, b, -b. */
static int pointsOf(int64_t t, double *points) {
  const double a = t == 2 ? 1 : AJOUR_WINOGRAD_A, b = AJOUR_WINOGRAD_B;
  points[0] = 0, points[1] = a, points[2] = -a, points[3] = b, points[4] = -b;
  return (int)t + 1;
}

/* Row i of B^T: the coefficients of the product of (x - q) over the finite points q other than point i (for the last
 * row: over all of them). For t = 2 that of the point 0 is negated. */
static void inputRow(int64_t t, int i, double *row) {
  double points[5];
  const int finite = pointsOf(t, points);
  for (int64_t j = 0; j < t + 2; ++j)
    row[j] = j == 0;
  int degree = 0;
  for (int q = 0; q < finite; ++q) {
    if (q == i)
      continue;
    ++degree;
    for (int j = degree; j >= 0; --j)
      row[j] = (j > 0 ? row[j - 1] : 0) - points[q] * row[j];
  }
  if (t == 2 && i == 0)
    for (int64_t j = 0; j < t + 2; ++j)
      row[j] = -row[j];
}

void ajour_reference_winograd_input_f32(const float *src, int64_t ih, int64_t iw, int64_t c, int64_t tile_y,
                                        int64_t tile_x, int64_t pad_top, int64_t pad_left, int64_t channel, double *out,
                                        int64_t t) {
  const int64_t n = t + 2;
  double rows[6][6];
  for (int64_t i = 0; i < n; ++i)
    inputRow(t, (int)i, rows[i]);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t ky = 0; ky < n; ++ky)
        for (int64_t kx = 0; kx < n; ++kx) {
          const int64_t y = tile_y * t - pad_top + ky, x = tile_x * t - pad_left + kx;
          if (y >= 0 && y < ih && x >= 0 && x < iw)
            sum += rows[i][ky] * rows[j][kx] * src[(y * iw + x) * c + channel];
        }
      out[i * n + j] = sum;
    }
}

/* A^T[i][p] is the i-th power of point p; the point at infinity counts in the last row alone. */
static double power(int64_t t, int64_t i, int64_t p) {
  double points[5], value = 1;
  if (p >= pointsOf(t, points))
    return i == t - 1;
  for (int64_t j = 0; j < i; ++j)
    value *= points[p];
  return value;
}

void ajour_reference_winograd_output_f32(const float *src, int64_t point_stride, double *out, int64_t t) {
  const int64_t n = t + 2;
  for (int64_t y = 0; y < t; ++y)
    for (int64_t x = 0; x < t; ++x) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          sum += power(t, y, i) * power(t, x, j) * src[(i * n + j) * point_stride];
      out[y * t + x] = sum;
    }
}
