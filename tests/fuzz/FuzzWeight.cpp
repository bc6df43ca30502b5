// Fuzzes the reader of encoded weights: what it accepts must decode, and come out the same when it is written and read again.
#include <cstdlib>

#include "ajour/Encoding/Codec.h"

using namespace ajour::encoding;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  const DecodeOptions options = {.maxElements = 1 << 20};
  Weight weight, again;
  Encoding encoding, same;
  const bool isGood = verify(bytes, options).empty();
  if (decode(bytes, weight, encoding, options).empty() != isGood)
    std::abort();
  std::vector<uint8_t> written;
  // A codebook without an entry for zero can be read by chance, but not written.
  if (!isGood || !encode(weight, encoding, written).empty())
    return 0;
  if (!decode(written, again, same, options).empty() || !(same == encoding) || again.codes != weight.codes ||
      nonzeroMask(again, encoding.values) != nonzeroMask(weight, encoding.values))
    std::abort();
  return 0;
}
