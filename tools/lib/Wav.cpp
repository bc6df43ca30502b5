//===- Wav.cpp - Sound files ----------------------------------------------===//

#include "ToolSupport/Wav.h"
#include "ToolSupport/Inputs.h"

#include <cstring>

namespace ajour::tools {

namespace {

enum Format : uint32_t { Pcm = 1, Float = 3, Extensible = 0xfffe };

/// Little-endian bytes with their bounds.
struct Reader {
  std::span<const std::byte> bytes;
  const std::string &file;

  [[noreturn]] void fail(const std::string &what) const {
    throw ToolError(file + ": not a WAV file that can be read: " + what);
  }

  uint32_t integer(size_t offset, size_t size) const {
    if (offset > bytes.size() || size > bytes.size() - offset)
      fail("it is cut off");
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i)
      value |= static_cast<uint32_t>(bytes[offset + i]) << (8 * i);
    return value;
  }

  bool hasTag(size_t offset, const char *tag) const {
    return bytes.size() >= 4 && offset <= bytes.size() - 4 && std::memcmp(bytes.data() + offset, tag, 4) == 0;
  }
};

struct Layout {
  uint32_t format = 0, bits = 0;
};

float decodeSample(const std::byte *source, Layout layout) {
  if (layout.format == Float && layout.bits == 32) {
    float value;
    std::memcpy(&value, source, sizeof(value));
    return value;
  }
  if (layout.format == Float) {
    double value;
    std::memcpy(&value, source, sizeof(value));
    return static_cast<float>(value);
  }
  if (layout.bits == 8) // The one unsigned width.
    return (static_cast<float>(source[0]) - 128) / 128;
  uint32_t word = 0;
  for (uint32_t i = 0; i < layout.bits / 8; ++i)
    word |= static_cast<uint32_t>(source[i]) << (32 - layout.bits + 8 * i);
  return static_cast<float>(static_cast<int32_t>(word) / 2147483648.0);
}

/// Reads the format chunk into `sound`; an extensible one names the format by the first two bytes of a GUID.
Layout parseFormat(const Reader &reader, size_t offset, uint32_t size, Sound &sound) {
  if (size < 16)
    reader.fail("the format chunk is too short");
  Layout layout{reader.integer(offset, 2), reader.integer(offset + 14, 2)};
  sound.channels = reader.integer(offset + 2, 2);
  sound.sampleRate = reader.integer(offset + 4, 4);
  if (layout.format == Extensible) {
    if (size < 26)
      reader.fail("the extensible format chunk is too short");
    layout.format = reader.integer(offset + 24, 2);
  }
  bool known = layout.format == Pcm ? layout.bits == 8 || layout.bits == 16 || layout.bits == 24 || layout.bits == 32
                                    : layout.format == Float && (layout.bits == 32 || layout.bits == 64);
  if (!known)
    reader.fail("format " + std::to_string(layout.format) + " with " + std::to_string(layout.bits) +
                " bits, expected PCM of 8, 16, 24 or 32 bits or float of 32 or 64");
  if (sound.channels == 0 || sound.channels > 64)
    reader.fail(std::to_string(sound.channels) + " channels");
  return layout;
}

} // namespace

Sound parseWav(std::span<const std::byte> bytes, const std::string &file) {
  Reader reader{bytes, file};
  if (!reader.hasTag(0, "RIFF") || !reader.hasTag(8, "WAVE"))
    reader.fail("the RIFF and WAVE marks are missing");
  Sound sound;
  Layout layout;
  for (size_t offset = 12;;) {
    uint32_t size = reader.integer(offset + 4, 4);
    size_t body = offset + 8;
    if (size > bytes.size() - body)
      reader.fail("a chunk of " + std::to_string(size) + " bytes has " + std::to_string(bytes.size() - body));
    if (reader.hasTag(offset, "fmt ")) {
      layout = parseFormat(reader, body, size, sound);
    } else if (reader.hasTag(offset, "data")) {
      if (!layout.format)
        reader.fail("the data come before the format");
      uint32_t sampleBytes = layout.bits / 8;
      if (size % (sampleBytes * sound.channels) != 0)
        reader.fail("the data end within a frame");
      sound.samples.resize(size / sampleBytes);
      for (size_t i = 0; i < sound.samples.size(); ++i)
        sound.samples[i] = decodeSample(bytes.data() + body + i * sampleBytes, layout);
      return sound;
    }
    // Chunks are padded to an even length.
    offset = body + size + (size & 1);
  }
}

HostTensor soundToTensor(const Sound &sound, const TensorInfo &info, const std::string &file) {
  int64_t frames = static_cast<int64_t>(sound.samples.size()) / sound.channels;
  HostTensor tensor = makeTensor(info.type, fillFreeSizes(info, frames, file));
  for (int64_t i = 0; i < frames; ++i) {
    double sum = 0;
    for (uint32_t c = 0; c < sound.channels; ++c)
      sum += sound.samples[static_cast<size_t>(i * sound.channels + c)];
    double value = sum / sound.channels;
    if (!isIntegerType(info.type))
      setReal(tensor, i, value);
    else if (info.scale != 0)
      setQuantized(tensor, i, value, info);
    else if (info.type == AJOUR_I16)
      setReal(tensor, i, value * 32768);
    else
      throw ToolError(file + ": a sound does not fit input '" + info.name + "' of type " +
                      ajour_element_name(info.type) + "; give a .npy file");
  }
  return tensor;
}

} // namespace ajour::tools
