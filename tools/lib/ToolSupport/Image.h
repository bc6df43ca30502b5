//===- Image.h - Pictures as model inputs -----------------------*- C++ -*-===//

#ifndef AJOUR_TOOLS_IMAGE_H
#define AJOUR_TOOLS_IMAGE_H

#include "ToolSupport/Files.h"

#include <utility>

namespace ajour::tools {

/// Pixels in rows from the top, channels innermost, 0 to 255.
struct Image {
  int height = 0, width = 0, channels = 0;
  std::vector<float> pixels;
};

enum class ImageLayout { Auto, NCHW, NHWC };
enum class ResizeMethod { Bilinear, Nearest };

/// How a picture becomes a tensor. For every channel: real = (low + pixel / 255 * (high - low) - mean) / std.
///
/// What is stored depends on the input's element type. Floats store `real`. Integers store the raw pixel when none of range, mean
/// and std is given (ui8: pixel; i8: pixel - 128, the same bits with the sign moved; wider types: pixel), otherwise `real` through
/// the input's scale and zero point, or rounded if it has none.
struct ImageOptions {
  ImageLayout layout = ImageLayout::Auto;
  ResizeMethod resize = ResizeMethod::Bilinear;
  /// The tensor's first channel is blue, not red.
  bool bgr = false;
  /// Values of pixels 0 and 255; {0, 1} if empty.
  std::vector<double> range;
  /// One number for all channels or one for each, in the tensor's channel order and in the units that `range` gives.
  std::vector<double> mean, std;

  bool scalesExplicitly() const { return !range.empty() || !mean.empty() || !std.empty(); }
};

/// Decodes PNG, JPEG or BMP to 1 (luminance), 3 (RGB) or 4 (RGBA) channels. Throws ToolError naming `file`.
Image decodeImage(std::span<const std::byte> bytes, int channels, const std::string &file);

/// Resizes with pixel centres at half coordinates. Nearest takes the pixel under (i + 0.5) * in / out, rounded as Pillow does;
/// bilinear weights the four pixels around it and repeats the edge. Neither filters before it shrinks, like the resize ops of the model formats.
Image resizeImage(const Image &image, int height, int width, ResizeMethod method);

/// Where a tensor keeps its picture: sizes, -1 where the picture decides.
struct ImagePlace {
  bool channelsFirst = false;
  int64_t height = -1, width = -1, channels = 3;
};

/// Finds the place from the shape: 1xCxHxW or 1xHxWxC, CxHxW or HxWxC with C of 1, 3 or 4; HxW. Where both fit, NHWC holds
/// unless the layout is given. Throws ToolError if the input cannot be a picture.
ImagePlace findImagePlace(const TensorInfo &info, ImageLayout layout, const std::string &file);

/// Reads a picture into a tensor of the input's type and shape. Throws ToolError.
HostTensor imageToTensor(std::span<const std::byte> bytes, const TensorInfo &info, const ImageOptions &options,
                         const std::string &file);

} // namespace ajour::tools

#endif
