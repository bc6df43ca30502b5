//===- ImageTest.cpp - Pictures as model inputs ---------------------------===//

#include "ToolSupport/Image.h"
#include "Tools/Npz.h"
#include "Tools/TempDirectory.h"

#include <gtest/gtest.h>
#include <random>

using namespace ajour::tools;

namespace {

/// A 24-bit BMP; `pixels` are rows from the top of r, g, b.
Bytes bmpOf(int height, int width, const std::vector<int> &pixels) {
  int rowBytes = (width * 3 + 3) / 4 * 4;
  Bytes bytes(static_cast<size_t>(54 + rowBytes * height));
  auto put = [&](size_t offset, uint32_t value, size_t size) {
    for (size_t i = 0; i < size; ++i)
      bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
  };
  put(0, 0x4d42, 2);
  put(2, static_cast<uint32_t>(bytes.size()), 4);
  put(10, 54, 4);
  put(14, 40, 4);
  put(18, static_cast<uint32_t>(width), 4);
  put(22, static_cast<uint32_t>(height), 4);
  put(26, 1, 2);
  put(28, 24, 2);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        bytes[static_cast<size_t>(54 + (height - 1 - y) * rowBytes + x * 3 + 2 - c)] =
            static_cast<std::byte>(pixels[static_cast<size_t>((y * width + x) * 3 + c)]);
  return bytes;
}

const std::vector<int> rgb2x2 = {255, 0, 0, 0, 255, 0, 0, 0, 255, 51, 102, 153};

std::vector<double> valuesOf(const HostTensor &tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    values.push_back(getReal(tensor, i));
  return values;
}

std::vector<double> load(const TensorInfo &info, const ImageOptions &options = {}) {
  return valuesOf(imageToTensor(bmpOf(2, 2, rgb2x2), info, options, "a.bmp"));
}

TEST(Image, FloatsAreZeroToOneInTheInputsLayout) {
  std::vector<double> nhwc = load({"x", AJOUR_F64, {1, 2, 2, 3}}), nchw = load({"x", AJOUR_F64, {1, 3, 2, 2}});
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(nhwc[i], rgb2x2[i] / 255.0, 1e-12);
    EXPECT_NEAR(nchw[i], rgb2x2[(i % 4) * 3 + i / 4] / 255.0, 1e-12);
  }
}

TEST(Image, FreeSizesAreThePictures) {
  HostTensor tensor = imageToTensor(bmpOf(2, 2, rgb2x2), {"x", AJOUR_F32, {-1, 3, -1, -1}}, {}, "a.bmp");
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{1, 3, 2, 2}));
}

TEST(Image, IntegersAreRawPixelsUnlessScaled) {
  std::vector<double> raw(rgb2x2.begin(), rgb2x2.end());
  EXPECT_EQ(load({"x", AJOUR_U8, {1, 2, 2, 3}, 0.0078125f, 128}), raw);
  std::vector<double> moved = load({"x", AJOUR_I8, {1, 2, 2, 3}, 0.5f, 3});
  for (size_t i = 0; i < 12; ++i)
    EXPECT_EQ(moved[i], raw[i] - 128);
  ImageOptions options;
  options.range = {-1, 1};
  EXPECT_EQ(load({"x", AJOUR_U8, {1, 2, 2, 3}, 0.5f, 10}, options)[0], 12);
  EXPECT_EQ(load({"x", AJOUR_U8, {1, 2, 2, 3}, 0.5f, 10}, options)[1], 8);
}

TEST(Image, MeanStdAndBgrAreInTheTensorsChannelOrder) {
  ImageOptions options;
  options.range = {0, 255};
  options.mean = {10, 20, 30};
  options.std = {2};
  options.bgr = true;
  std::vector<double> values = load({"x", AJOUR_F32, {1, 2, 2, 3}}, options);
  EXPECT_EQ(std::vector<double>(values.end() - 3, values.end()), (std::vector<double>{71.5, 41, 10.5}));
}

TEST(Image, OneChannelIsLuminance) {
  std::vector<double> values = load({"x", AJOUR_U8, {1, 2, 2, 1}});
  EXPECT_EQ(values.size(), 4u);
  EXPECT_NEAR(values[0], 0.299 * 255, 2);
  EXPECT_EQ(load({"x", AJOUR_U8, {2, 2}}), values);
}

TEST(Image, LayoutOptionDecidesWhereBothFit) {
  HostTensor first = imageToTensor(bmpOf(2, 2, rgb2x2), {"x", AJOUR_U8, {1, 3, 4, 3}}, {}, "a.bmp");
  ImageOptions options;
  options.layout = ImageLayout::NCHW;
  HostTensor second = imageToTensor(bmpOf(2, 2, rgb2x2), {"x", AJOUR_U8, {1, 3, 4, 3}}, options, "a.bmp");
  EXPECT_NE(first.data, second.data);
}

TEST(Image, ResizeUsesPixelCentres) {
  Image image{1, 4, 1, {0, 10, 20, 30}};
  EXPECT_EQ(resizeImage(image, 1, 2, ResizeMethod::Nearest).pixels, (std::vector<float>{10, 30}));
  EXPECT_EQ(resizeImage(image, 1, 2, ResizeMethod::Bilinear).pixels, (std::vector<float>{5, 25}));
  EXPECT_EQ(resizeImage(image, 1, 8, ResizeMethod::Bilinear).pixels,
            (std::vector<float>{0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30}));
  EXPECT_EQ(resizeImage(image, 2, 4, ResizeMethod::Nearest).pixels, (std::vector<float>{0, 10, 20, 30, 0, 10, 20, 30}));
}

TEST(Image, NearestIsThatOfThePublishedInputs) {
  std::string models = AJOUR_TEST_MODELS, picture = models + "/coral/cat.bmp";
  for (const auto &[name, size] : {std::pair("mobilenet_v2_1.0_224_quant_cat_nearest", 224),
                                   std::pair("mobilenet_v1_0.25_128_quant_cat_nearest", 128)}) {
    std::string archive = models + "/golden/" + name + ".npz";
    if (!std::filesystem::exists(picture) || !std::filesystem::exists(archive))
      GTEST_SKIP() << "no file " << picture << " or " << archive;
    ImageOptions options;
    options.resize = ResizeMethod::Nearest;
    HostTensor ours = imageToTensor(readFile(picture), {"x", AJOUR_U8, {1, size, size, 3}}, options, picture);
    EXPECT_TRUE(readNpz(archive).at("input").data == ours.data) << name;
  }
}

TEST(Image, RefusalsNameFileAndInput) {
  auto message = [](const TensorInfo &info, const ImageOptions &options = {}) {
    return messageOf([&] { imageToTensor(bmpOf(2, 2, rgb2x2), info, options, "a.bmp"); });
  };
  EXPECT_EQ(message({"x", AJOUR_F32, {8, 3, 2, 2}}),
            "a.bmp: a picture does not fit input 'x' of shape 8x3x2x2: it takes 8 pictures at once; give a .npy file");
  EXPECT_EQ(message({"x", AJOUR_F32, {1, 10, 20, 30}}), "a.bmp: a picture does not fit input 'x' of shape 1x10x20x30: "
                                                        "no dimension can be 1, 3 or 4 channels; give a .npy file");
  EXPECT_EQ(message({"x", AJOUR_F32, {7}}),
            "a.bmp: a picture does not fit input 'x' of shape 7: expected 2 to 4 dimensions; give a .npy file");
  ImageOptions options;
  options.mean = {1, 2};
  EXPECT_EQ(message({"x", AJOUR_F32, {1, 3, 2, 2}}, options),
            "--mean has 2 numbers, expected 1 or 3, one for each channel");
  options.mean = {};
  options.std = {0};
  EXPECT_EQ(message({"x", AJOUR_F32, {1, 3, 2, 2}}, options), "--std must not be 0 or infinite");
  options.std = {};
  options.range = {1};
  EXPECT_EQ(message({"x", AJOUR_F32, {1, 3, 2, 2}}, options), "--input-range takes two numbers, found 1");
  EXPECT_EQ(messageOf([] { decodeImage(bytesOf("text"), 3, "a.png"); }).find("a.png: not a PNG, JPEG or BMP picture"), 0u);
}

TEST(Image, DamagedFilesAreReadOrRefused) {
  Bytes whole = bmpOf(2, 2, rgb2x2);
  int refused = 0;
  for (size_t length = 0; length < whole.size(); ++length) {
    try {
      decodeImage(std::span(whole).subspan(0, length), 3, "f");
    } catch (const ToolError &) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 40);
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    Bytes damaged = whole;
    // Not in the sizes: a picture that is honestly huge is only slow.
    size_t place = random() % damaged.size();
    if (place >= 18 && place < 26)
      continue;
    damaged[place] = static_cast<std::byte>(random());
    try {
      EXPECT_EQ(decodeImage(damaged, 3, "f").pixels.size(), 12u);
    } catch (const ToolError &) {
    }
  }
}

TEST(Image, OversizedHuffmanTablesAreRefused) {
  // A JPEG's first bytes, a comment, and a table that says 255 codes of 2 bits and 2 of 3.
  std::string jpeg("\xff\xd8\xff\xfe\0\3x\xff\xc4\0\x14\0\0\xff\2", 15);
  jpeg += std::string(40, '\0');
  EXPECT_EQ(messageOf([&] { decodeImage(bytesOf(jpeg), 3, "f.jpg"); }),
            "f.jpg: the picture is damaged: a Huffman table has more than 256 codes");
  // A decoder skips filling bytes before the picture's start.
  EXPECT_EQ(messageOf([&] { decodeImage(bytesOf("\xff\xff" + jpeg), 3, "f.jpg"); }),
            "f.jpg: the picture is damaged: a Huffman table has more than 256 codes");
  jpeg[13] = '\xfe';
  EXPECT_EQ(messageOf([&] { decodeImage(bytesOf(jpeg), 3, "f.jpg"); }).find("Huffman"), std::string::npos);
}

TEST(Image, HugeSizesAreRefusedBeforeDecoding) {
  Bytes bytes = bmpOf(2, 2, rgb2x2);
  bytes[20] = std::byte(0x7f);
  bytes[24] = std::byte(0x7f);
  EXPECT_NE(messageOf([&] { decodeImage(bytes, 3, "f"); }), "nothing thrown");
  // 514 x 2050 pixels need more than the 70 bytes that are there, whatever the format.
  bytes = bmpOf(2, 2, rgb2x2);
  bytes[19] = std::byte(2);
  bytes[23] = std::byte(8);
  EXPECT_EQ(messageOf([&] { decodeImage(bytes, 3, "f.bmp"); }),
            "f.bmp: the picture is damaged: it says that it has 514x2050 pixels in 70 bytes");
}

TEST(Image, CutOffBmpPicturesAreRefused) {
  Bytes whole = bmpOf(2, 2, rgb2x2);
  // Rows are filled up to whole words; what fills the last one may be missing.
  size_t needed = whole.size() - 2;
  for (size_t length = 0; length < whole.size(); ++length) {
    auto decode = [&] { decodeImage(std::span(whole).first(length), 3, "a.bmp"); };
    if (length >= needed)
      EXPECT_NO_THROW(decode());
    else if (length >= 54)
      EXPECT_EQ(messageOf(decode), "a.bmp: the picture is cut off: it has " + std::to_string(length) + " bytes, 2x2 pixels take " + std::to_string(needed));
    else
      EXPECT_THROW(decode(), ToolError);
  }
}

} // namespace
