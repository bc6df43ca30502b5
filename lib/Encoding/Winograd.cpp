#include "ajour/Encoding/Winograd.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <vector>

namespace ajour::encoding {

int64_t winogradPoints(int64_t t) { return (t + 2) * (t + 2); }

/// The rows of G.
static std::vector<std::array<double, 3>> filterRows(int64_t t) {
  assert(t == 2 || t == 4);
  const double a = std::sqrt(0.5), b = std::sqrt(2.0);
  const std::vector<double> points = t == 2 ? std::vector<double>{0, 1, -1} : std::vector<double>{0, a, -a, b, -b};
  std::vector<std::array<double, 3>> rows;
  for (double p : points) {
    double scale = t == 2 && p == 0 ? -1 : 1;
    for (double q : points)
      if (q != p)
        scale *= p - q;
    rows.push_back({1 / scale, p / scale, p * p / scale});
  }
  rows.push_back({0, 0, 1});
  return rows;
}

static void transform(const std::vector<std::array<double, 3>> &rows, const double *filter, double *points) {
  const size_t n = rows.size();
  for (size_t i = 0; i < n; ++i) {
    double row[3];
    for (int x = 0; x < 3; ++x)
      row[x] = rows[i][0] * filter[x] + rows[i][1] * filter[3 + x] + rows[i][2] * filter[6 + x];
    for (size_t j = 0; j < n; ++j)
      points[i * n + j] = rows[j][0] * row[0] + rows[j][1] * row[1] + rows[j][2] * row[2];
  }
}

void winogradFilter(int64_t t, std::span<const double, 9> filter, std::span<double> points) {
  assert(static_cast<int64_t>(points.size()) == winogradPoints(t));
  transform(filterRows(t), filter.data(), points.data());
}

int64_t packedWinogradSize(int64_t t, int64_t channels, int64_t n, int64_t nr) {
  return (n + nr - 1) / nr * nr * winogradPoints(t) * channels;
}

void packWinograd(const float *filters, int64_t t, int64_t channels, int64_t n, int64_t nr, std::span<float> packed) {
  assert(static_cast<int64_t>(packed.size()) == packedWinogradSize(t, channels, n, nr));
  const auto rows = filterRows(t);
  const int64_t count = winogradPoints(t);
  std::vector<double> points(count);
  for (int64_t first = 0; first < n; first += nr) {
    float *panel = packed.data() + first * count * channels;
    if (first + nr > n)
      std::fill_n(panel, nr * count * channels, 0.0f);
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t j = 0; j < std::min(nr, n - first); ++j) {
        double filter[9];
        for (int tap = 0; tap < 9; ++tap)
          filter[tap] = filters[((first + j) * 9 + tap) * channels + c];
        transform(rows, filter, points.data());
        for (int64_t p = 0; p < count; ++p)
          panel[(p * channels + c) * nr + j] = static_cast<float>(points[p]);
      }
  }
}

} // namespace ajour::encoding
