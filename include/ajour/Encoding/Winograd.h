/// Filters of Winograd's convolution, transformed and packed for the CPU micro-kernels.
///
/// The method and the matrices A and B are described with the kernels (ajour/Kernels/Kernels.h, "Winograd's convolution").
#ifndef AJOUR_ENCODING_WINOGRAD_H
#define AJOUR_ENCODING_WINOGRAD_H

#include <cstdint>
#include <span>

namespace ajour::encoding {

/// The points of F(t x t, 3 x 3): (t + 2)^2.
int64_t winogradPoints(int64_t t);

/// G g G^T of one 3 x 3 filter, row-major, computed in double precision. Row i of G is (1, p, p^2) / N, where p is point i and
/// N the product of its differences from the other finite points (for t = 2 that of the point 0 is negated, as is its
/// row of B^T); (0, 0, 1) for the point at infinity. t is 2 or 4.
void winogradFilter(int64_t t, std::span<const double, 9> filter, std::span<double> points);

/// The elements of packed filters: panels [ceil(n / nr)][points][channels][nr].
int64_t packedWinogradSize(int64_t t, int64_t channels, int64_t n, int64_t nr);

/// Transforms the filters [n][3][3][channels] and packs them into panels [ceil(n / nr)][points][channels][nr]: for each
/// panel and each point what gemm_f32 kernels read. Columns from n on are zero. `packed` holds packedWinogradSize elements.
void packWinograd(const float *filters, int64_t t, int64_t channels, int64_t n, int64_t nr, std::span<float> packed);

} // namespace ajour::encoding

#endif
