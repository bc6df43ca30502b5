//===- Wav.h - Sound files --------------------------------------*- C++ -*-===//

#ifndef AJOUR_TOOLS_WAV_H
#define AJOUR_TOOLS_WAV_H

#include "ToolSupport/Files.h"

namespace ajour::tools {

/// Sound in -1 to 1 (16-bit sample / 32768 and so on), channels interleaved.
struct Sound {
  uint32_t sampleRate = 0;
  uint32_t channels = 0;
  std::vector<float> samples;
};

/// Reads RIFF/WAVE: PCM of 8 (unsigned), 16, 24 or 32 bits and 32- or 64-bit float, also as WAVE_FORMAT_EXTENSIBLE. A data
/// chunk that promises more than the file holds is refused. Throws ToolError naming `file`.
Sound parseWav(std::span<const std::byte> bytes, const std::string &file);

/// Puts a sound into a tensor of the input's type and shape; several channels are averaged to one.
///
/// The sizes other than the free ones must multiply to the number of samples. Floats store the sample, quantised integers the
/// sample through scale and zero point, 16-bit integers without a scale the sample times 32768. Throws ToolError.
HostTensor soundToTensor(const Sound &sound, const TensorInfo &info, const std::string &file);

} // namespace ajour::tools

#endif
