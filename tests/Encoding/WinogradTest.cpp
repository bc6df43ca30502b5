// Transformed filters: numbers worked out by hand, and the layout element by element over ragged sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "ajour/Encoding/Winograd.h"

using namespace ajour::encoding;

// G = [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1].
TEST(Winograd, SmallTilesByHand) {
  const double filter[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<double> points(winogradPoints(2));
  winogradFilter(2, filter, points);
  const double expected[16] = {1, 3, 1, 3, 6, 11.25, 3.75, 9, 2, 3.75, 1.25, 3, 7, 12, 4, 9};
  for (int i = 0; i < 16; ++i)
    EXPECT_DOUBLE_EQ(points[i], expected[i]) << i;
}

// Of a filter with its middle tap alone, point (i, j) is G[i][1] * G[j][1]: 0 for the points 0 and infinity;
// a / (2 a^2 (a^2 - b^2)) = -a / 1.5 and b / (2 b^2 (b^2 - a^2)) = b / 6, whose squares are 2/9 and 1/18.
TEST(Winograd, LargeTilesByHand) {
  const double filter[9] = {0, 0, 0, 0, 1, 0, 0, 0, 0};
  std::vector<double> points(winogradPoints(4));
  winogradFilter(4, filter, points);
  const double sign[6] = {0, -1, 1, 1, -1, 0}, square[6] = {0, 2.0 / 9, 2.0 / 9, 1.0 / 18, 1.0 / 18, 0};
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j)
      EXPECT_NEAR(points[i * 6 + j], sign[i] * sign[j] * std::sqrt(square[i] * square[j]), 1e-15) << i << "," << j;
}

TEST(Winograd, PanelsOfPoints) {
  std::mt19937 rng(3);
  for (int64_t t : {2, 4})
    for (int64_t channels : {1, 5, 16})
      for (int64_t n : {1, 7, 8, 9, 33})
        for (int64_t nr : {8, 32}) {
          std::vector<float> filters(n * 9 * channels);
          for (float &x : filters)
            x = float(int(rng() % 31) - 15);
          std::vector<float> packed(packedWinogradSize(t, channels, n, nr), 99.0f);
          packWinograd(filters.data(), t, channels, n, nr, packed);
          const int64_t count = winogradPoints(t);
          ASSERT_EQ(int64_t(packed.size()), (n + nr - 1) / nr * nr * count * channels);
          std::vector<double> points(count);
          for (int64_t j = 0; j < (n + nr - 1) / nr * nr; ++j)
            for (int64_t c = 0; c < channels; ++c) {
              double filter[9] = {};
              for (int tap = 0; tap < 9 && j < n; ++tap)
                filter[tap] = filters[(j * 9 + tap) * channels + c];
              winogradFilter(t, filter, points);
              for (int64_t p = 0; p < count; ++p)
                ASSERT_EQ(packed[((j / nr * count + p) * channels + c) * nr + j % nr], float(points[p]))
                    << "t " << t << " filter " << j << " channel " << c << " point " << p;
            }
        }
}
