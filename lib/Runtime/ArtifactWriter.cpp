#include "ajour/Runtime/ArtifactWriter.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "ajour/ABI/ArtifactHeader.h"
#include "ajour/ABI/Dispatch.h"

namespace ajour {

namespace {

/// A file that vanishes unless it is kept.
class TemporaryFile {
public:
  explicit TemporaryFile(const std::string &target)
      : path(target + ".tmp." + std::to_string(getpid())), file(std::fopen(path.c_str(), "wbx")) {}
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;
  ~TemporaryFile() {
    if (file)
      std::fclose(file);
    if (created && !kept)
      std::remove(path.c_str());
  }

  bool seek(uint64_t offset) { return fseeko(file, static_cast<off_t>(offset), SEEK_SET) == 0; }
  bool write(const void *data, size_t size) { return size == 0 || std::fwrite(data, 1, size, file) == size; }

  /// Flushes everything and gives the file its name.
  bool keepAs(const std::string &target) {
    bool done = std::fflush(file) == 0 && fsync(fileno(file)) == 0;
    done &= std::fclose(file) == 0;
    file = nullptr;
    kept = done && std::rename(path.c_str(), target.c_str()) == 0;
    return kept;
  }

  bool isOpen() const { return file != nullptr; }

private:
  std::string path;
  std::FILE *file;
  bool created = file != nullptr;
  bool kept = false;
};

} // namespace

static uint64_t roundUp(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

/// Serialises so that the size depends on no number: defaults are written out.
static void pack(flatbuffers::FlatBufferBuilder &builder, const artifact::ModelT &model) {
  builder.Clear();
  builder.ForceDefaults(true);
  artifact::FinishModelBuffer(builder, artifact::Model::Pack(builder, &model));
}

/// Writes one segment at the file's position and sets its checksum.
static std::string writeSegment(TemporaryFile &file, const SegmentSource &source, artifact::SegmentT &segment) {
  ajour_checksum_state state;
  ajour_checksum_begin(&state);
  std::vector<char> piece;
  for (uint64_t done = 0; done < source.size;) {
    size_t bytes = static_cast<size_t>(std::min<uint64_t>(source.size - done, 4u << 20));
    const char *from = static_cast<const char *>(source.data) + done;
    if (source.read) {
      piece.resize(bytes);
      if (!source.read(source.context, done, piece.data(), bytes))
        return "cannot produce segment '" + source.name + "'";
      from = piece.data();
    }
    ajour_checksum_add(&state, from, bytes);
    if (!file.write(from, bytes))
      return std::string("cannot write segment '") + source.name + "': " + std::strerror(errno);
    done += bytes;
  }
  segment.checksum = ajour_checksum_end(&state);
  return "";
}

static ajour_artifact_header makeHeader(const flatbuffers::FlatBufferBuilder &description, uint64_t fileSize) {
  ajour_artifact_header header = {};
  std::memcpy(header.magic, AJOUR_ARTIFACT_MAGIC, sizeof(header.magic));
  header.major_version = AJOUR_ARTIFACT_MAJOR;
  header.minor_version = AJOUR_ARTIFACT_MINOR;
  header.file_size = fileSize;
  header.description_offset = sizeof(header);
  header.description_size = description.GetSize();
  header.description_checksum = ajour_checksum(description.GetBufferPointer(), description.GetSize());
  header.compiler_version[0] = AJOUR_VERSION_MAJOR;
  header.compiler_version[1] = AJOUR_VERSION_MINOR;
  header.compiler_version[2] = AJOUR_VERSION_PATCH;
  header.header_checksum = ajour_checksum(&header, offsetof(ajour_artifact_header, header_checksum));
  return header;
}

std::string writeArtifact(const std::string &path, artifact::ModelT &model,
                          const std::vector<SegmentSource> &segments) {
  model.segments.clear();
  for (const SegmentSource &source : segments) {
    auto segment = std::make_unique<artifact::SegmentT>();
    segment->name = source.name;
    segment->size = source.size;
    model.segments.push_back(std::move(segment));
  }
  flatbuffers::FlatBufferBuilder builder;
  pack(builder, model);
  const size_t descriptionSize = builder.GetSize();
  uint64_t end = sizeof(ajour_artifact_header) + descriptionSize;
  auto problem = [&](const std::string &what) { return path + ": " + what; };
  // The file takes the place of what is there, which must not be a device.
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return problem(S_ISDIR(status.st_mode) ? "cannot write: is a directory, expected a file"
                                           : "cannot write: is a pipe or device, expected a regular file");
  TemporaryFile file(path);
  if (!file.isOpen())
    return problem(std::string("cannot create the file: ") + std::strerror(errno));
  for (size_t i = 0; i < segments.size(); ++i) {
    model.segments[i]->offset = roundUp(end, AJOUR_SEGMENT_ALIGNMENT);
    if (!file.seek(model.segments[i]->offset))
      return problem(std::string("cannot write: ") + std::strerror(errno));
    std::string wrong = writeSegment(file, segments[i], *model.segments[i]);
    if (!wrong.empty())
      return problem(wrong);
    end = model.segments[i]->offset + segments[i].size;
  }
  // Constants may be read a little past their end.
  const char slack[AJOUR_BUFFER_SLACK] = {};
  bool written = file.seek(end) && file.write(slack, sizeof(slack));
  pack(builder, model);
  if (builder.GetSize() != descriptionSize)
    return problem("the description changed its size while being written");
  ajour_artifact_header header = makeHeader(builder, end + sizeof(slack));
  written = written && file.seek(0) && file.write(&header, sizeof(header)) &&
            file.write(builder.GetBufferPointer(), descriptionSize) && file.keepAs(path);
  return written ? "" : problem(std::string("cannot write: ") + std::strerror(errno));
}

} // namespace ajour
