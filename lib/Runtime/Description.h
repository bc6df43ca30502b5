/// The door: checks an artifact's header and description before anything relies on them.
#ifndef AJOUR_LIB_RUNTIME_DESCRIPTION_H
#define AJOUR_LIB_RUNTIME_DESCRIPTION_H

#include "Flat.h"
#include "Support.h"
#include "ajour/ABI/ArtifactHeader.h"

namespace ajour::runtime {

// Limits on what an artifact may contain; docs/ARTIFACT.md lists them.
constexpr uint64_t maxDescriptionBytes = 256u << 20;
constexpr uint32_t maxSymbols = 256;
constexpr uint32_t maxTensors = 4096;
constexpr uint32_t maxPrograms = 16;
constexpr uint32_t maxSegments = 65536;
constexpr uint32_t maxAttachments = 256;
constexpr uint32_t maxExecutables = 64;
constexpr uint32_t maxDispatches = 65536;
constexpr uint32_t maxBuffers = 1u << 20;
constexpr uint32_t maxNameBytes = 4096;

/// Checks the header of an artifact of `available` bytes and copies it. `exact`: nothing may follow the
/// artifact.
ajour_status_code checkHeader(const uint8_t *data, uint64_t available, bool exact, const char *name,
                              ajour_artifact_header &header);

/// Checks a description (8-aligned, of header.description_size bytes): its form, every index, every
/// expression, every range. Takes time and memory linear in its size.
ajour_status_code checkDescription(const uint8_t *description, const ajour_artifact_header &header, const char *name,
                                   const artifact::Model *&model);

} // namespace ajour::runtime

#endif
