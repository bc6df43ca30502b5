// Fuzzes the artifact loader. The first byte chooses: an executable for the ELF loader, a description
// (a header with right checksums is put before it), or a whole file.
#include <cstring>
#include <string>

#include "ElfImage.h"
#include "ajour/ABI/ArtifactHeader.h"
#include "ajour/ABI/CpuFeatures.h"
#include "ajour/ajour.h"

extern "C" const char *__asan_default_options() { return "allocator_may_return_null=1"; }

static void loadElf(const uint8_t *data, size_t size) {
  ajour::runtime::ElfImage image;
#if defined(__aarch64__)
  uint32_t arch = AJOUR_ARCH_AARCH64;
#else
  uint32_t arch = AJOUR_ARCH_X86_64;
#endif
  if (image.load({data, size, -1, 0, arch, "code"}) == AJOUR_OK)
    image.findFunction("test_add");
}

static void loadArtifact(const std::string &bytes) {
  ajour_load_options options = AJOUR_INIT(ajour_load_options);
  options.flags = AJOUR_LOAD_COPY;
  ajour_model *model = nullptr;
  if (ajour_model_load_memory(bytes.data(), bytes.size(), &options, &model) != AJOUR_OK)
    return;
  ajour_session_options once = AJOUR_INIT(ajour_session_options);
  once.threads = 1;
  once.memory_budget = 1 << 26;
  ajour_session *session = nullptr;
  if (ajour_session_create(model, &once, &session) == AJOUR_OK)
    ajour_session_destroy(session);
  ajour_model_destroy(model);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  uint8_t mode = *data % 3;
  std::string bytes(reinterpret_cast<const char *>(data + 1), size - 1);
  if (mode == 0) {
    loadElf(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
    return 0;
  }
  if (mode == 1) {
    ajour_artifact_header header = {};
    std::memcpy(header.magic, AJOUR_ARTIFACT_MAGIC, sizeof(header.magic));
    header.major_version = AJOUR_ARTIFACT_MAJOR;
    header.description_offset = sizeof(header);
    header.description_size = bytes.size();
    header.description_checksum = ajour_checksum(bytes.data(), bytes.size());
    // Room for segments that the description may name.
    header.file_size = (sizeof(header) + bytes.size() + 3 * AJOUR_SEGMENT_ALIGNMENT) / 64 * 64;
    header.header_checksum = ajour_checksum(&header, offsetof(ajour_artifact_header, header_checksum));
    bytes.insert(0, reinterpret_cast<const char *>(&header), sizeof(header));
    bytes.resize(header.file_size);
  }
  loadArtifact(bytes);
  return 0;
}
