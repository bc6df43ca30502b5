/// Writes .ajour files (docs/ARTIFACT.md).
#ifndef AJOUR_RUNTIME_ARTIFACTWRITER_H
#define AJOUR_RUNTIME_ARTIFACTWRITER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ajour/ABI/Artifact_generated.h"

namespace ajour {

/// The bytes of one segment: either in memory (`data`) or produced piece by piece (`read`).
struct SegmentSource {
  std::string name;
  const void *data = nullptr;
  uint64_t size = 0;
  /// Fills `to` with `bytes` bytes of the segment from `offset`; pieces are asked in order.
  /// Returns false on failure.
  bool (*read)(void *context, uint64_t offset, void *to, size_t bytes) = nullptr;
  void *context = nullptr;
};

/// Writes `model` with `segments` to `path`, whole or not at all (a temporary file beside it is
/// renamed at the end). Replaces `model.segments`; segment indices in `model` are indices into
/// `segments`. Returns an empty string, or a message that names the file.
std::string writeArtifact(const std::string &path, artifact::ModelT &model,
                          const std::vector<SegmentSource> &segments);

} // namespace ajour

#endif
