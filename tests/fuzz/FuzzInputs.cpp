// Fuzzes what the tools read as inputs of a model. The first byte chooses: an array, a sound, or a picture.
#include "ToolSupport/Image.h"
#include "ToolSupport/Npy.h"
#include "ToolSupport/Wav.h"

using namespace ajour::tools;

extern "C" const char *__asan_default_options() { return "allocator_may_return_null=1"; }

static void readPicture(std::span<const std::byte> bytes, uint8_t choice) {
  const int channels[] = {1, 3, 4};
  Image image = decodeImage(bytes, channels[choice % 3], "fuzz.png");
  resizeImage(image, 1 + choice % 5, 1 + choice % 7, choice & 64 ? ResizeMethod::Nearest : ResizeMethod::Bilinear);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::span<const std::byte> bytes(reinterpret_cast<const std::byte *>(data + 1), size - 1);
  try {
    switch (*data % 3) {
    case 0:
      parseNpy(bytes, "fuzz.npy");
      break;
    case 1:
      parseWav(bytes, "fuzz.wav");
      break;
    default:
      readPicture(bytes, *data / 3);
    }
  } catch (const ToolError &) {
    // refused with a message
  }
  return 0;
}
