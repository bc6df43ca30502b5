//===- Image.cpp - Pictures as model inputs -------------------------------===//

#include "ToolSupport/Image.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#define STBI_NO_STDIO
#include <stb/stb_image.h>

namespace ajour::tools {

namespace {
/// Larger pictures are refused before anything is decoded.
constexpr int64_t maxPixels = int64_t(1) << 27;
/// No more pixels than this come from a byte: deflate makes at most 1032 bytes of one, and a byte holds at most 8 pixels.
constexpr int64_t maxPixelsPerByte = 8 * 1032;

/// Where the centre of target pixel `index` falls.
double sourceCentre(int index, int in, int out) { return (index + 0.5) * in / out; }

/// The source pixel under the centre of each target pixel. Centres are summed up instead of multiplied, because where one falls on
/// an edge the rounding decides, and this is how Pillow rounds, with which most published inputs were made.
std::vector<int> nearestSources(int in, int out) {
  std::vector<int> sources(static_cast<size_t>(out));
  double step = static_cast<double>(in) / out, centre = step * 0.5;
  for (int &source : sources) {
    source = std::min(static_cast<int>(centre), in - 1);
    centre += step;
  }
  return sources;
}

/// Whether a JPEG has a Huffman table of more than 256 codes, which stb_image would write past the end of its own. Walks the
/// segments; in the coded data between them only a marker follows the byte 0xff, unless it is 0.
bool hasOversizedHuffmanTable(std::span<const std::byte> bytes) {
  auto at = [&](size_t i) { return i < bytes.size() ? std::to_integer<uint32_t>(bytes[i]) : 0u; };
  size_t start = 0; // behind any number of filling bytes
  while (at(start) == 0xff)
    ++start;
  if (start == 0 || at(start) != 0xd8)
    return false;
  for (size_t i = start + 1; i + 3 < bytes.size();) {
    uint32_t marker = at(i + 1);
    if (at(i) != 0xff || marker == 0 || marker == 0xff || (marker >= 0xd0 && marker <= 0xd9)) {
      ++i; // coded data, a filling byte, or a marker without a segment
      continue;
    }
    const size_t length = at(i + 2) << 8 | at(i + 3), end = i + 2 + length;
    if (marker == 0xc4) {
      for (size_t table = i + 4; table < end && table < bytes.size();) {
        size_t codes = 0;
        for (size_t k = 1; k <= 16; ++k)
          codes += at(table + k);
        if (codes > 256)
          return true;
        table += 17 + codes;
      }
    }
    i = marker == 0xda ? i + 2 : end; // the coded data of a scan follows its header
  }
  return false;
}
} // namespace

/// Bytes that the file of a BMP picture must have, or 0 of another kind. stb_image takes what is missing for black.
static int64_t bmpBytes(std::span<const std::byte> bytes) {
  auto number = [&](size_t at, size_t size) {
    uint32_t value = 0;
    for (size_t i = size; i-- > 0;)
      value = value << 8 | std::to_integer<uint32_t>(bytes[at + i]);
    return value;
  };
  if (bytes.size() < 30 || number(0, 2) != 0x4d42)
    return 0;
  bool isOld = number(14, 4) == 12; // OS/2's header has sizes of 16 bits
  int64_t width = isOld ? number(18, 2) : int32_t(number(18, 4)), height = isOld ? number(20, 2) : int32_t(number(22, 4));
  int64_t bits = number(isOld ? 24 : 28, 2), rowBytes = (std::abs(width) * bits + 31) / 32 * 4;
  // The last row may lack what fills it up to whole words.
  return height == 0 ? 0 : number(10, 4) + rowBytes * (std::abs(height) - 1) + (std::abs(width) * bits + 7) / 8;
}

Image decodeImage(std::span<const std::byte> bytes, int channels, const std::string &file) {
  const auto *data = reinterpret_cast<const stbi_uc *>(bytes.data());
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    throw ToolError(file + ": the picture's file is too large");
  if (hasOversizedHuffmanTable(bytes))
    throw ToolError(file + ": the picture is damaged: a Huffman table has more than 256 codes");
  int size = static_cast<int>(bytes.size()), width = 0, height = 0, stored = 0;
  if (!stbi_info_from_memory(data, size, &width, &height, &stored))
    throw ToolError(file + ": not a PNG, JPEG or BMP picture that can be read: " + stbi_failure_reason());
  if (width < 1 || height < 1 || static_cast<int64_t>(width) * height > maxPixelsPerByte * size)
    throw ToolError(file + ": the picture is damaged: it says that it has " + std::to_string(width) + "x" +
                    std::to_string(height) + " pixels in " + std::to_string(size) + " bytes");
  if (static_cast<int64_t>(width) * height > maxPixels)
    throw ToolError(file + ": the picture has " + std::to_string(width) + "x" + std::to_string(height) +
                    " pixels, more than " + std::to_string(maxPixels));
  if (int64_t needed = bmpBytes(bytes); needed > size)
    throw ToolError(file + ": the picture is cut off: it has " + std::to_string(size) + " bytes, " + std::to_string(width) + "x" +
                    std::to_string(height) + " pixels take " + std::to_string(needed));
  std::unique_ptr<stbi_uc, void (*)(void *)> decoded(
      stbi_load_from_memory(data, size, &width, &height, &stored, channels), stbi_image_free);
  if (!decoded)
    throw ToolError(file + ": the picture is damaged: " + stbi_failure_reason());
  Image image{height, width, channels, {}};
  image.pixels.assign(decoded.get(), decoded.get() + static_cast<int64_t>(width) * height * channels);
  return image;
}

Image resizeImage(const Image &image, int height, int width, ResizeMethod method) {
  if (image.height == height && image.width == width)
    return image;
  Image result{height, width, image.channels, {}};
  result.pixels.resize(static_cast<size_t>(height) * width * image.channels);
  auto pixel = [&](int y, int x, int c) {
    return image.pixels[(static_cast<size_t>(y) * image.width + x) * image.channels + c];
  };
  float *out = result.pixels.data();
  if (method == ResizeMethod::Nearest) {
    std::vector<int> columns = nearestSources(image.width, width);
    for (int y : nearestSources(image.height, height))
      for (int x : columns)
        for (int c = 0; c < image.channels; ++c)
          *out++ = pixel(y, x, c);
    return result;
  }
  for (int y = 0; y < height; ++y) {
    double top = std::max(sourceCentre(y, image.height, height) - 0.5, 0.0);
    int y0 = static_cast<int>(top), y1 = std::min(y0 + 1, image.height - 1);
    double dy = top - y0;
    for (int x = 0; x < width; ++x) {
      double left = std::max(sourceCentre(x, image.width, width) - 0.5, 0.0);
      int x0 = static_cast<int>(left), x1 = std::min(x0 + 1, image.width - 1);
      double dx = left - x0;
      for (int c = 0; c < image.channels; ++c)
        *out++ = static_cast<float>((1 - dy) * ((1 - dx) * pixel(y0, x0, c) + dx * pixel(y0, x1, c)) +
                                    dy * ((1 - dx) * pixel(y1, x0, c) + dx * pixel(y1, x1, c)));
    }
  }
  return result;
}

ImagePlace findImagePlace(const TensorInfo &info, ImageLayout layout, const std::string &file) {
  auto refuse = [&](const std::string &why) {
    throw ToolError(file + ": a picture does not fit input '" + info.name + "' of shape " + shapeText(info.shape) +
                    ": " + why + "; give a .npy file");
  };
  std::vector<int64_t> shape = info.shape;
  if (shape.size() == 4) {
    if (shape[0] != 1 && shape[0] != -1)
      refuse("it takes " + std::to_string(shape[0]) + " pictures at once");
    shape.erase(shape.begin());
  }
  if (shape.size() == 2)
    return {false, shape[0], shape[1], 1};
  if (shape.size() != 3)
    refuse("expected 2 to 4 dimensions");
  auto isChannels = [](int64_t size) { return size == 1 || size == 3 || size == 4; };
  bool first = isChannels(shape[0]), last = isChannels(shape[2]);
  if (layout != ImageLayout::Auto) {
    first = layout == ImageLayout::NCHW && first;
    last = layout == ImageLayout::NHWC && last;
  }
  if (last)
    return {false, shape[0], shape[1], shape[2]};
  if (first)
    return {true, shape[1], shape[2], shape[0]};
  refuse("no dimension can be 1, 3 or 4 channels");
  return {};
}

namespace {

/// The value for channel `channel` of a list that has one entry for all channels or one for each.
double perChannel(const std::vector<double> &list, int channel, double otherwise) {
  return list.empty() ? otherwise : list[list.size() == 1 ? 0 : static_cast<size_t>(channel)];
}

void checkOptions(const ImageOptions &options, int channels) {
  if (!options.range.empty() && options.range.size() != 2)
    throw ToolError("--input-range takes two numbers, found " + std::to_string(options.range.size()));
  for (const auto &[name, list] : {std::pair("--mean", &options.mean), std::pair("--std", &options.std)})
    if (list->size() > 1 && list->size() != static_cast<size_t>(channels))
      throw ToolError(std::string(name) + " has " + std::to_string(list->size()) + " numbers, expected " + (channels == 1 ? "" : "1 or ") +
                      std::to_string(channels) + ", one for each channel");
  for (double value : options.std)
    if (value == 0 || !std::isfinite(value))
      throw ToolError("--std must not be 0 or infinite");
}

void storePixel(HostTensor &tensor, int64_t index, float pixel, int channel, const TensorInfo &info,
                const ImageOptions &options) {
  if (isIntegerType(info.type) && !options.scalesExplicitly())
    return setReal(tensor, index, info.type == AJOUR_I8 ? std::nearbyint(pixel) - 128 : pixel);
  double low = options.range.empty() ? 0 : options.range[0], high = options.range.empty() ? 1 : options.range[1];
  double real = low + pixel / 255.0 * (high - low);
  real = (real - perChannel(options.mean, channel, 0)) / perChannel(options.std, channel, 1);
  if (isIntegerType(info.type) && info.scale != 0)
    setQuantized(tensor, index, real, info);
  else
    setReal(tensor, index, real);
}

} // namespace

HostTensor imageToTensor(std::span<const std::byte> bytes, const TensorInfo &info, const ImageOptions &options,
                         const std::string &file) {
  ImagePlace place = findImagePlace(info, options.layout, file);
  int channels = static_cast<int>(place.channels);
  checkOptions(options, channels);
  Image image = decodeImage(bytes, channels, file);
  int64_t height = place.height < 0 ? image.height : place.height;
  int64_t width = place.width < 0 ? image.width : place.width;
  if (height == 0 || width == 0 || height > maxPixels || width > maxPixels || height * width > maxPixels)
    throw ToolError(file + ": a picture cannot be resized to input '" + info.name + "' of shape " + shapeText(info.shape));
  image = resizeImage(image, static_cast<int>(height), static_cast<int>(width), options.resize);

  std::vector<int64_t> shape = {height, width};
  if (info.shape.size() > 2)
    shape.insert(place.channelsFirst ? shape.begin() : shape.end(), channels);
  if (info.shape.size() == 4)
    shape.insert(shape.begin(), 1);
  HostTensor tensor = makeTensor(info.type, shape);
  int64_t area = height * width;
  for (int64_t i = 0; i < area; ++i) {
    for (int c = 0; c < channels; ++c) {
      int source = options.bgr && channels >= 3 && c < 3 ? 2 - c : c;
      int64_t index = place.channelsFirst ? c * area + i : i * channels + c;
      storePixel(tensor, index, image.pixels[static_cast<size_t>(i * channels + source)], c, info, options);
    }
  }
  return tensor;
}

} // namespace ajour::tools
