//===- WavTest.cpp - Sound files ------------------------------------------===//

#include "ToolSupport/Wav.h"
#include "Tools/TempDirectory.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace ajour::tools;

namespace {

std::string little(uint32_t value, int size) {
  std::string text;
  for (int i = 0; i < size; ++i)
    text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string chunk(const std::string &tag, const std::string &body) {
  return tag + little(static_cast<uint32_t>(body.size()), 4) + body + (body.size() & 1 ? std::string(1, '\0') : "");
}

std::string formatChunk(uint32_t format, uint32_t channels, uint32_t bits, const std::string &extra = "") {
  return chunk("fmt ", little(format, 2) + little(channels, 2) + little(16000, 4) + little(0, 4) + little(0, 2) +
                           little(bits, 2) + extra);
}

std::string riff(const std::string &body) { return "RIFF" + little(static_cast<uint32_t>(body.size() + 4), 4) + "WAVE" + body; }

Sound parse(const std::string &text) { return parseWav(bytesOf(text), "a.wav"); }

TEST(Wav, ReadsEveryWidth) {
  EXPECT_EQ(parse(riff(formatChunk(1, 1, 8) + chunk("data", "\x80\xff"))).samples, (std::vector<float>{0, 127 / 128.0f}));
  EXPECT_EQ(parse(riff(formatChunk(1, 1, 16) + chunk("data", little(0x8000, 2) + little(0x4000, 2)))).samples,
            (std::vector<float>{-1, 0.5}));
  EXPECT_EQ(parse(riff(formatChunk(1, 1, 24) + chunk("data", little(0xc00000, 3)))).samples, (std::vector<float>{-0.5}));
  EXPECT_EQ(parse(riff(formatChunk(1, 1, 32) + chunk("data", little(0x20000000, 4)))).samples, (std::vector<float>{0.25}));
  float value = -0.75f;
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  EXPECT_EQ(parse(riff(formatChunk(3, 1, 32) + chunk("data", little(bits, 4)))).samples, (std::vector<float>{-0.75}));
  double wide = 0.125;
  uint64_t wideBits;
  std::memcpy(&wideBits, &wide, 8);
  std::string data = little(static_cast<uint32_t>(wideBits), 4) + little(static_cast<uint32_t>(wideBits >> 32), 4);
  EXPECT_EQ(parse(riff(formatChunk(3, 1, 64) + chunk("data", data))).samples, (std::vector<float>{0.125}));
}

TEST(Wav, SkipsOtherChunksAndReadsTheExtensibleForm) {
  std::string extra = little(22, 2) + little(16, 2) + little(0, 4) + little(1, 2) + std::string(14, 'g');
  Sound sound = parse(riff(chunk("LIST", "odd") + formatChunk(0xfffe, 2, 16, extra) +
                           chunk("data", little(0x4000, 2) + little(0xc000, 2))));
  EXPECT_EQ(sound.channels, 2u);
  EXPECT_EQ(sound.sampleRate, 16000u);
  EXPECT_EQ(sound.samples, (std::vector<float>{0.5, -0.5}));
}

TEST(Wav, RefusalsNameTheFile) {
  const std::string start = "a.wav: not a WAV file that can be read: ";
  auto message = [](const std::string &text) { return messageOf([&] { parse(text); }); };
  EXPECT_EQ(message("text that is no sound"), start + "the RIFF and WAVE marks are missing");
  EXPECT_EQ(message(riff(chunk("data", "1234"))), start + "the data come before the format");
  EXPECT_EQ(message(riff(formatChunk(7, 1, 8))), start + "format 7 with 8 bits, expected PCM of 8, 16, 24 or 32 bits or float of 32 or 64");
  EXPECT_EQ(message(riff(formatChunk(1, 0, 8))), start + "0 channels");
  EXPECT_EQ(message(riff(chunk("fmt ", "short"))), start + "the format chunk is too short");
  EXPECT_EQ(message(riff(formatChunk(0xfffe, 1, 16))), start + "the extensible format chunk is too short");
  EXPECT_EQ(message(riff(formatChunk(1, 1, 16) + chunk("data", "123"))), start + "the data end within a frame");
  EXPECT_EQ(message(riff(formatChunk(1, 1, 16) + "data" + little(100, 4) + "12")), start + "a chunk of 100 bytes has 2");
  EXPECT_EQ(message(riff(formatChunk(1, 1, 16))), start + "it is cut off");
}

TEST(Wav, DamagedFilesAreReadOrRefused) {
  std::string whole = riff(formatChunk(1, 2, 16) + chunk("data", std::string(64, 'x')));
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(parse(whole.substr(0, length)), ToolError);
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = whole;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      EXPECT_LE(parse(damaged).samples.size(), 64u);
    } catch (const ToolError &) {
    }
  }
}

TEST(Wav, TensorsTakeTheMeanOfTheChannels) {
  Sound sound{16000, 2, {0.5f, 0, -1, 0}};
  HostTensor tensor = soundToTensor(sound, {"x", AJOUR_F32, {1, -1}}, "a.wav");
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(getReal(tensor, 0), 0.25);
  EXPECT_EQ(getReal(tensor, 1), -0.5);
  EXPECT_EQ(getReal(soundToTensor(sound, {"x", AJOUR_I16, {2}}, "a.wav"), 0), 8192);
  EXPECT_EQ(getReal(soundToTensor(sound, {"x", AJOUR_I8, {2}, 0.25f, 1}, "a.wav"), 0), 2);
  EXPECT_EQ(messageOf([&] { soundToTensor(sound, {"x", AJOUR_I8, {2}}, "a.wav"); }),
            "a.wav: a sound does not fit input 'x' of type i8; give a .npy file");
  EXPECT_EQ(messageOf([&] { soundToTensor(sound, {"x", AJOUR_F32, {1, 3}}, "a.wav"); }),
            "a.wav: has 2 elements, input 'x' (f32 1x3) takes 3");
}

} // namespace
