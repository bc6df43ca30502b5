#include "Description.h"

namespace ajour::runtime {

using Number = unsigned long long;

static ajour_status_code checkHeaderFields(const ajour_artifact_header &header, uint64_t available, bool exact,
                                           const char *name) {
  if (header.flags != 0 || header.reserved != 0)
    return fail(AJOUR_BAD_FILE, "%s: header flags are %u and %u, expected 0", name, header.flags, header.reserved);
  if (header.file_size > available)
    return fail(AJOUR_BAD_FILE, "%s: the file is cut short: %llu bytes, expected %llu", name, (Number)available,
                (Number)header.file_size);
  if (exact && header.file_size != available)
    return fail(AJOUR_BAD_FILE, "%s: %llu bytes follow the artifact of %llu bytes", name,
                (Number)(available - header.file_size), (Number)header.file_size);
  if (header.description_size > maxDescriptionBytes)
    return fail(AJOUR_BAD_FILE, "%s: description of %llu bytes, allowed %llu", name, (Number)header.description_size,
                (Number)maxDescriptionBytes);
  if (header.description_offset < sizeof(header) || header.description_offset % 64 != 0 ||
      !rangeFits(header.description_offset, header.description_size, header.file_size))
    return fail(AJOUR_BAD_FILE, "%s: description at %llu of %llu bytes lies outside the file of %llu bytes", name,
                (Number)header.description_offset, (Number)header.description_size, (Number)header.file_size);
  return AJOUR_OK;
}

ajour_status_code checkHeader(const uint8_t *data, uint64_t available, bool exact, const char *name,
                              ajour_artifact_header &header) {
  if (available < sizeof(header))
    return fail(AJOUR_BAD_FILE, "%s: too short for an artifact: %llu bytes, expected at least %u", name,
                (Number)available, (unsigned)sizeof(header));
  std::memcpy(&header, data, sizeof(header));
  if (std::memcmp(header.magic, AJOUR_ARTIFACT_MAGIC, sizeof(header.magic)) != 0)
    return fail(AJOUR_BAD_FILE, "%s: not an ajour artifact: it starts with bytes %02x %02x %02x %02x", name, data[0],
                data[1], data[2], data[3]);
  if (header.major_version != AJOUR_ARTIFACT_MAJOR)
    return fail(AJOUR_VERSION,
                "%s: made by ajour %u.%u.%u in format %u.%u; this runtime (%d.%d.%d) reads format %d: needs runtime %s "
                "%u.%u",
                name, header.compiler_version[0], header.compiler_version[1], header.compiler_version[2],
                header.major_version, header.minor_version, AJOUR_VERSION_MAJOR, AJOUR_VERSION_MINOR,
                AJOUR_VERSION_PATCH, AJOUR_ARTIFACT_MAJOR,
                header.major_version > AJOUR_ARTIFACT_MAJOR ? ">=" : "of version", header.compiler_version[0],
                header.compiler_version[1]);
  uint64_t sum = ajour_checksum(data, offsetof(ajour_artifact_header, header_checksum));
  if (sum != header.header_checksum)
    return fail(AJOUR_CHECKSUM, "%s: header is damaged: checksum %016llx, expected %016llx", name, (Number)sum,
                (Number)header.header_checksum);
  if (ajour_status_code status = checkHeaderFields(header, available, exact, name))
    return status;
  sum = ajour_checksum(data + header.description_offset, header.description_size);
  if (sum != header.description_checksum)
    return fail(AJOUR_CHECKSUM, "%s: description is damaged: checksum %016llx, expected %016llx", name, (Number)sum,
                (Number)header.description_checksum);
  return AJOUR_OK;
}

} // namespace ajour::runtime
