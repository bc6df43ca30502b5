//===- ModelFiles.cpp - trained models and data of the tests --------------------===//
#include "Support/ModelFiles.h"

#include "ToolSupport/Image.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

namespace ajour::test {

std::string findModelFile(const std::string &name) {
  std::string path = std::string(AJOUR_MODELS_DIR) + "/" + name;
  return std::ifstream(path).good() ? path : "";
}

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string readGz(const std::string &path) {
  gzFile file = gzopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  std::string all;
  std::vector<char> chunk(1 << 16);
  for (int n; file && (n = gzread(file, chunk.data(), chunk.size())) > 0;)
    all.append(chunk.data(), n);
  if (file)
    gzclose(file);
  return all;
}

//===----------------------------------------------------------------------===//
// NumPy
//===----------------------------------------------------------------------===//

static HostTensor parseNpy(const std::string &bytes, const std::string &name) {
  static const std::map<std::string, uint32_t> types = {
      {"|u1", AJOUR_U8},  {"|i1", AJOUR_I8},  {"<i2", AJOUR_I16}, {"<i4", AJOUR_I32}, {"<i8", AJOUR_I64},
      {"<f4", AJOUR_F32}, {"<f8", AJOUR_F64}, {"<f2", AJOUR_F16}, {"|b1", AJOUR_BOOL}};
  HostTensor tensor;
  if (bytes.size() < 10 || bytes.compare(0, 6, "\x93NUMPY") != 0) {
    ADD_FAILURE() << name << ": not an array";
    return tensor;
  }
  uint16_t length;
  memcpy(&length, bytes.data() + 8, 2);
  std::string header = bytes.substr(10, length);
  size_t descr = header.find("'descr': '") + 10, shape = header.find("'shape': (") + 10;
  auto type = types.find(header.substr(descr, 3));
  if (type == types.end() || header.find("'fortran_order': False") == std::string::npos) {
    ADD_FAILURE() << name << ": " << header;
    return tensor;
  }
  tensor.elementType = type->second;
  std::stringstream dims(header.substr(shape, header.find(')', shape) - shape));
  for (std::string dim; std::getline(dims, dim, ',');)
    if (dim.find_first_of("0123456789") != std::string::npos)
      tensor.shape.push_back(std::stoll(dim));
  tensor.data.assign(bytes.begin() + 10 + length, bytes.end());
  EXPECT_EQ(int64_t(tensor.data.size()), tensor.numElements() * ajour_element_size(tensor.elementType)) << name;
  return tensor;
}

HostTensor readNpy(const std::string &path) { return parseNpy(readFile(path), path); }

static std::string inflateRaw(const char *data, size_t size, size_t inflated) {
  std::string out(inflated, '\0');
  z_stream stream{};
  inflateInit2(&stream, -MAX_WBITS);
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(data));
  stream.avail_in = size;
  stream.next_out = reinterpret_cast<Bytef *>(out.data());
  stream.avail_out = inflated;
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  inflateEnd(&stream);
  return out;
}

std::map<std::string, HostTensor> readNpz(const std::string &path) {
  std::string zip = readFile(path);
  auto number = [&](size_t at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes && at + i < zip.size(); ++i)
      value |= uint64_t(uint8_t(zip[at + i])) << (8 * i);
    return value;
  };
  std::map<std::string, HostTensor> arrays;
  // The central directory, then each member's own header for the place of its bytes.
  size_t end = zip.rfind("PK\x05\x06");
  if (end == std::string::npos) {
    ADD_FAILURE() << path << ": not an archive";
    return arrays;
  }
  size_t at = number(end + 16, 4);
  for (uint64_t count = number(end + 10, 2); count > 0; --count) {
    size_t packed = number(at + 20, 4), size = number(at + 24, 4), local = number(at + 42, 4);
    std::string name = zip.substr(at + 46, number(at + 28, 2));
    size_t data = local + 30 + number(local + 26, 2) + number(local + 28, 2);
    std::string bytes = number(at + 10, 2) == 8 ? inflateRaw(zip.data() + data, packed, size) : zip.substr(data, size);
    arrays[name.substr(0, name.rfind(".npy"))] = parseNpy(bytes, path + ":" + name);
    at += 46 + number(at + 28, 2) + number(at + 30, 2) + number(at + 32, 2);
  }
  return arrays;
}

//===----------------------------------------------------------------------===//
// Archives, pictures
//===----------------------------------------------------------------------===//

std::map<std::string, std::string> readTarGz(const std::string &path) {
  std::string tar = readGz(path);
  std::map<std::string, std::string> files;
  for (size_t at = 0; at + 512 <= tar.size() && tar[at];) {
    size_t size = std::stoull("0" + tar.substr(at + 124, 11), nullptr, 8);
    std::string name(tar.data() + at, strnlen(tar.data() + at, 100));
    std::string prefix(tar.data() + at + 345, strnlen(tar.data() + at + 345, 155));
    bool ustar = tar.compare(at + 257, 6, std::string("ustar\0", 6)) == 0;
    if (tar[at + 156] == '0' || tar[at + 156] == 0)
      files[ustar && !prefix.empty() ? prefix + "/" + name : name] = tar.substr(at + 512, size);
    at += 512 + (size + 511) / 512 * 512;
  }
  return files;
}

std::vector<Picture> readCifar(const std::string &path) {
  std::string bytes = readGz(path);
  constexpr size_t plane = 32 * 32, record = 1 + 3 * plane;
  std::vector<Picture> pictures;
  for (size_t at = 0; at + record <= bytes.size(); at += record) {
    Picture picture{uint8_t(bytes[at]), std::vector<uint8_t>(3 * plane)};
    for (size_t c = 0; c < 3; ++c)
      for (size_t i = 0; i < plane; ++i)
        picture.pixels[i * 3 + c] = bytes[at + 1 + c * plane + i];
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

std::vector<Picture> readMnist(const std::string &images, const std::string &labels) {
  std::string pixels = readGz(images), digits = readGz(labels);
  std::vector<Picture> pictures;
  for (size_t i = 0; 16 + (i + 1) * 784 <= pixels.size() && 8 + i < digits.size(); ++i)
    pictures.push_back({uint8_t(digits[8 + i]), std::vector<uint8_t>(pixels.begin() + 16 + i * 784,
                                                                    pixels.begin() + 16 + (i + 1) * 784)});
  return pictures;
}

/// A decoded picture; without pixels after a failure.
static tools::Image decodePicture(const std::string &path, int channels) {
  try {
    return tools::decodeImage(tools::readFile(path), channels, path);
  } catch (const tools::ToolError &error) {
    ADD_FAILURE() << error.what();
    return {};
  }
}

std::vector<uint8_t> readImage(const std::string &path, int width, int height, int channels) {
  tools::Image image = decodePicture(path, channels);
  if (image.pixels.empty())
    return {};
  image = tools::resizeImage(image, height, width, tools::ResizeMethod::Nearest);
  return {image.pixels.begin(), image.pixels.end()};
}

/// Resizes rows of `from` pixels to rows of `to`; `count` rows, the pixels of each `step` bytes apart.
static void resizeLines(const uint8_t *source, uint8_t *target, int from, int to, int count, int64_t sourceStep,
                        int64_t sourceLine, int64_t targetStep, int64_t targetLine) {
  auto kernel = [](double x) {
    x = std::abs(x);
    return x < 1 ? (1.5 * x - 2.5) * x * x + 1 : x < 2 ? ((2.5 - .5 * x) * x - 4) * x + 2 : 0;
  };
  double scale = double(from) / to, support = std::max(scale, 1.0);
  for (int i = 0; i < to; ++i) {
    double center = (i + .5) * scale;
    int first = std::max(0, int(center - 2 * support)), last = std::min(from - 1, int(center + 2 * support));
    std::vector<double> weights;
    double sum = 0;
    for (int k = first; k <= last; ++k)
      sum += weights.emplace_back(kernel((k + .5 - center) / support));
    for (int line = 0; line < count; ++line)
      for (int c = 0; c < 3; ++c) {
        double value = 0;
        for (int k = first; k <= last; ++k)
          value += weights[k - first] * source[line * sourceLine + k * sourceStep + c];
        target[line * targetLine + i * targetStep + c] = uint8_t(std::clamp(std::round(value / sum), 0.0, 255.0));
      }
  }
}

std::vector<uint8_t> readImageSmooth(const std::string &path, int width, int height, const std::array<int, 4> &part) {
  tools::Image image = decodePicture(path, 3);
  std::vector<uint8_t> decoded(image.pixels.begin(), image.pixels.end());
  const uint8_t *pixels = decoded.data();
  int fileWidth = image.width, fileHeight = image.height;
  std::vector<uint8_t> out(size_t(width) * height * 3);
  auto [left, top, right, bottom] = part[2] ? part : std::array<int, 4>{0, 0, fileWidth, fileHeight};
  if (decoded.empty() || right > fileWidth || bottom > fileHeight) {
    ADD_FAILURE() << path << ": not a picture of " << right << " by " << bottom;
  } else {
    int rows = bottom - top;
    std::vector<uint8_t> narrow(size_t(width) * rows * 3);
    resizeLines(pixels + (int64_t(top) * fileWidth + left) * 3, narrow.data(), right - left, width, rows, 3,
                int64_t(fileWidth) * 3, 3, int64_t(width) * 3);
    resizeLines(narrow.data(), out.data(), rows, height, width, int64_t(width) * 3, 3, int64_t(width) * 3, 3);
  }
  return out;
}

} // namespace ajour::test
