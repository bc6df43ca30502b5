// The container: checksum, header, writer.
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Fixture.h"

using namespace ajour;
using namespace ajour::test;

TEST(Checksum, PiecesEqualTheWhole) {
  std::string data(1000, 0);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<char>(i * 7 + i / 100);
  for (size_t piece : {1, 3, 63, 64, 65, 500}) {
    ajour_checksum_state state;
    ajour_checksum_begin(&state);
    for (size_t at = 0; at < data.size(); at += piece)
      ajour_checksum_add(&state, data.data() + at, std::min(piece, data.size() - at));
    EXPECT_EQ(ajour_checksum_end(&state), ajour_checksum(data.data(), data.size()));
  }
}

TEST(Checksum, FindsEveryFlipAndLength) {
  std::string data(300, 0x5a);
  uint64_t sum = ajour_checksum(data.data(), data.size());
  for (size_t at = 0; at < data.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      data[at] = static_cast<char>(data[at] ^ (1 << bit));
      EXPECT_NE(ajour_checksum(data.data(), data.size()), sum);
      data[at] = static_cast<char>(data[at] ^ (1 << bit));
    }
  std::string zeros(200, 0);
  for (size_t size = 0; size + 1 < zeros.size(); ++size)
    EXPECT_NE(ajour_checksum(zeros.data(), size), ajour_checksum(zeros.data(), size + 1));
}

// The value is part of the file format: it may never change.
TEST(Checksum, KnownValues) {
  std::string data(100, 0);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<char>(i);
  EXPECT_EQ(ajour_checksum("", 0), 14512023413103702842ull);
  EXPECT_EQ(ajour_checksum(data.data(), 100), 11284484043402210729ull);
}

/// Changes header fields, refreshes the header's checksum and expects a refusal.
static void expectHeader(const std::function<void(ajour_artifact_header &)> &change, ajour_status_code status,
                         const char *message, bool refresh = true) {
  static const std::string good = makeAffine().bytes();
  std::string bytes = good;
  ajour_artifact_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  change(header);
  if (refresh)
    header.header_checksum = ajour_checksum(&header, offsetof(ajour_artifact_header, header_checksum));
  std::memcpy(bytes.data(), &header, sizeof(header));
  Loaded loaded = loadBytes(bytes);
  EXPECT_EQ(loaded.status, status) << loaded.message;
  EXPECT_NE(loaded.message.find(message), std::string::npos) << loaded.message;
  EXPECT_EQ(loaded.message.rfind("artifact: ", 0), 0u) << loaded.message;
}

TEST(Header, Refused) {
  using H = ajour_artifact_header;
  expectHeader([](H &h) { h.magic[0] = 'B'; }, AJOUR_BAD_FILE, "not an ajour artifact: it starts with bytes 42 4a 4f 55");
  expectHeader([](H &h) { h.flags = 4; }, AJOUR_BAD_FILE, "header flags are 4 and 0, expected 0");
  expectHeader([](H &h) { h.file_size += 1; }, AJOUR_BAD_FILE, "the file is cut short");
  expectHeader([](H &h) { h.file_size -= 1; }, AJOUR_BAD_FILE, "1 bytes follow the artifact");
  expectHeader([](H &h) { h.description_size = UINT64_MAX; }, AJOUR_BAD_FILE, "allowed 268435456");
  expectHeader([](H &h) { h.description_offset = UINT64_MAX - 63; }, AJOUR_BAD_FILE, "lies outside the file");
  expectHeader([](H &h) { h.description_offset += 1; }, AJOUR_BAD_FILE, "lies outside the file");
  expectHeader([](H &h) { h.description_size -= 1; }, AJOUR_CHECKSUM, "description is damaged");
  expectHeader([](H &h) { h.description_checksum ^= 1; }, AJOUR_CHECKSUM, "description is damaged");
  expectHeader([](H &h) { h.minor_version ^= 1; }, AJOUR_CHECKSUM, "header is damaged", false);
  Loaded loaded = loadBytes("too short");
  EXPECT_EQ(loaded.message, "artifact: too short for an artifact: 9 bytes, expected at least 64");
}

TEST(Header, Versions) {
  using H = ajour_artifact_header;
  expectHeader(
      [](H &h) {
        h.major_version = 2;
        h.compiler_version[0] = 3;
        h.compiler_version[1] = 7;
        h.compiler_version[2] = 1;
      },
      AJOUR_VERSION, "made by ajour 3.7.1 in format 2.0; this runtime (0.1.0) reads format 1: needs runtime >= 3.7");
  // A newer minor version only adds what an older reader may ignore.
  std::string bytes = makeAffine().bytes();
  uint16_t minor = 9;
  std::memcpy(bytes.data() + offsetof(ajour_artifact_header, minor_version), &minor, 2);
  refreshHeader(bytes);
  EXPECT_EQ(loadBytes(bytes).status, AJOUR_OK);
}

TEST(Writer, LayoutAndStreams) {
  TestModel model = makeAffine();
  std::string big(200000, 0);
  for (size_t i = 0; i < big.size(); ++i)
    big[i] = static_cast<char>(i * 31);
  SegmentSource stream;
  stream.name = "stream";
  stream.size = big.size();
  stream.context = &big;
  stream.read = [](void *context, uint64_t offset, void *to, size_t bytes) {
    std::memcpy(to, static_cast<std::string *>(context)->data() + offset, bytes);
    return true;
  };
  std::vector<SegmentSource> segments = {{"memory", big.data(), big.size()}, stream, {"empty", nullptr, 0}};
  std::string path = temporaryPath("layout.ajour");
  ASSERT_EQ(writeArtifact(path, model.description, segments), "");
  std::string bytes = readFile(path);
  const auto &written = model.description.segments;
  ASSERT_EQ(written.size(), 3u);
  EXPECT_EQ(written[0]->checksum, written[1]->checksum);
  for (const auto &segment : written) {
    EXPECT_EQ(segment->offset % AJOUR_SEGMENT_ALIGNMENT, 0u);
    EXPECT_LE(segment->offset + segment->size + AJOUR_BUFFER_SLACK, bytes.size());
  }
  EXPECT_EQ(bytes.substr(written[1]->offset, big.size()), big);
  EXPECT_EQ(written[2]->checksum, ajour_checksum("", 0));
  unlink(path.c_str());
}

TEST(Writer, LeavesNothingOnFailure) {
  TestModel model = makeAffine();
  SegmentSource broken;
  broken.name = "broken";
  broken.size = 10;
  broken.read = [](void *, uint64_t, void *, size_t) { return false; };
  std::string path = temporaryPath("broken.ajour");
  EXPECT_EQ(writeArtifact(path, model.description, {broken}), path + ": cannot produce segment 'broken'");
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  EXPECT_NE(access((path + ".tmp." + std::to_string(getpid())).c_str(), F_OK), 0);
  EXPECT_EQ(writeArtifact("/no/such/dir/a.ajour", model.description, {}),
            "/no/such/dir/a.ajour: cannot create the file: No such file or directory");
}

TEST(Writer, KeepsTheOldFileOnFailure) {
  TestModel model = makeAffine();
  std::string path = temporaryPath("old.ajour");
  writeFile(path, "old");
  SegmentSource broken;
  broken.name = "broken";
  broken.size = 10;
  broken.read = [](void *, uint64_t, void *, size_t) { return false; };
  EXPECT_NE(writeArtifact(path, model.description, {broken}), "");
  EXPECT_EQ(readFile(path), "old");
  unlink(path.c_str());
}

TEST(Writer, ReplacesNoDevice) {
  TestModel model = makeAffine();
  std::string path = temporaryPath("device.ajour");
  unlink(path.c_str());
  ASSERT_EQ(symlink("/dev/full", path.c_str()), 0);
  EXPECT_EQ(writeArtifact(path, model.description, {}),
            path + ": cannot write: is a pipe or device, expected a regular file");
  struct stat status;
  EXPECT_TRUE(stat(path.c_str(), &status) == 0 && S_ISCHR(status.st_mode));
  unlink(path.c_str());
  EXPECT_EQ(writeArtifact("/tmp", model.description, {}), "/tmp: cannot write: is a directory, expected a file");
}
