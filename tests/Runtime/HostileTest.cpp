// Damaged and hostile files: refused or run, never a crash, never slow.
#include <chrono>
#include <cstring>

#include "Fixture.h"

using namespace ajour;
using namespace ajour::test;

/// Loads from memory of exactly the file's size, so that a sanitizer sees reads beyond it.
static ajour_status_code tryLoad(const std::string &bytes, uint32_t flags = AJOUR_LOAD_COPY) {
  ajour_load_options options = AJOUR_INIT(ajour_load_options);
  options.flags = flags;
  ajour_model *model = nullptr;
  ajour_status_code status = ajour_model_load_memory(bytes.data(), bytes.size(), &options, &model);
  if (status == AJOUR_OK) {
    ajour_session_options once = AJOUR_INIT(ajour_session_options);
    once.threads = 1;
    once.memory_budget = 1 << 26;
    ajour_session *session = nullptr;
    if (ajour_session_create(model, &once, &session) == AJOUR_OK)
      ajour_session_destroy(session);
  }
  ajour_model_destroy(model);
  return status;
}

TEST(Hostile, EveryTruncation) {
  const std::string good = makeAffine(0, 64, "small").bytes();
  ASSERT_EQ(tryLoad(good), AJOUR_OK) << ajour_last_message();
  for (size_t size = 0; size < good.size(); ++size) {
    // Beyond the description, only the header's file size tells.
    if (size > 8192 && size + 200 < good.size())
      size += 96;
    EXPECT_EQ(tryLoad(good.substr(0, size)), AJOUR_BAD_FILE) << size;
  }
}

// Lists of 64-bit numbers at addresses that no compiler of such code expects.
TEST(Hostile, ListsMovedByFourBytes) {
  const std::string good = makeAffine(0, 64, "small").bytes();
  ajour_artifact_header header;
  std::memcpy(&header, good.data(), sizeof(header));
  size_t found = 0;
  for (size_t at = header.description_offset; at + 4 <= header.description_offset + header.description_size; at += 4)
    for (uint32_t by : {4u, ~3u}) {
      std::string bytes = good;
      uint32_t offset;
      std::memcpy(&offset, bytes.data() + at, sizeof(offset));
      offset += by;
      std::memcpy(bytes.data() + at, &offset, sizeof(offset));
      refreshHeader(bytes);
      if (tryLoad(bytes) != AJOUR_OK)
        found += std::strstr(ajour_last_message(), "lies at an address that is no multiple of 8") != nullptr;
    }
  EXPECT_GT(found, 3u);
}

TEST(Hostile, EveryFlippedByte) {
  TestModel model = makeAffine(0, 64, "small");
  const std::string good = model.bytes();
  auto padding = [&](size_t at) {
    ajour_artifact_header header;
    std::memcpy(&header, good.data(), sizeof(header));
    bool used = at < header.description_offset + header.description_size;
    for (const auto &segment : model.description.segments)
      used |= at >= segment->offset && at < segment->offset + segment->size;
    return !used;
  };
  size_t tried = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    if (padding(at))
      continue;
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x41);
    EXPECT_NE(tryLoad(bytes), AJOUR_OK) << at;
    ++tried;
  }
  EXPECT_GT(tried, 4000u);
}

// With the checksums made right again, the checks behind them must hold.
TEST(Hostile, FlippedDescriptionWithRightChecksums) {
  const std::string good = makeAffine(0, 64, "small").bytes();
  ajour_artifact_header header;
  std::memcpy(&header, good.data(), sizeof(header));
  size_t refused = 0, accepted = 0;
  for (size_t at = 8; at < header.description_offset + header.description_size; ++at)
    for (unsigned char flip : {0x01, 0x10, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      refreshHeader(bytes);
      (tryLoad(bytes) == AJOUR_OK ? accepted : refused) += 1;
    }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(accepted, 10u);
}

/// An artifact that consists of a header and this description.
static std::string wrap(const flatbuffers::FlatBufferBuilder &builder) {
  ajour_artifact_header header = {};
  std::memcpy(header.magic, AJOUR_ARTIFACT_MAGIC, 8);
  header.major_version = AJOUR_ARTIFACT_MAJOR;
  header.description_offset = 64;
  header.description_size = builder.GetSize();
  header.file_size = 64 + builder.GetSize();
  std::string bytes(reinterpret_cast<const char *>(&header), 64);
  bytes.append(reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize());
  refreshHeader(bytes);
  return bytes;
}

// Tables that share their parts describe a tree far larger than the file.
TEST(Hostile, SharedPartsAreNoTrap) {
  const size_t width = 100000;
  flatbuffers::FlatBufferBuilder builder;
  auto name = builder.CreateString("n");
  auto nodes = builder.CreateVector(std::vector<flatbuffers::Offset<flatbuffers::String>>(width, name));
  auto dispatch = artifact::CreateDispatch(builder, name, nodes, name);
  auto dispatches = builder.CreateVector(std::vector<flatbuffers::Offset<artifact::Dispatch>>(width / 2, dispatch));
  artifact::ProgramBuilder program(builder);
  program.add_arch(hostArch);
  program.add_dispatches(dispatches);
  auto programs = builder.CreateVector(std::vector<flatbuffers::Offset<artifact::Program>>(16, program.Finish()));
  artifact::ModelBuilder model(builder);
  model.add_programs(programs);
  artifact::FinishModelBuffer(builder, model.Finish());
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tryLoad(wrap(builder)), AJOUR_BAD_FILE);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST(Hostile, SharedOperandsAreNoTrap) {
  const size_t width = 60000;
  flatbuffers::FlatBufferBuilder builder;
  auto operands = builder.CreateVector(std::vector<uint32_t>(width, 0));
  auto code = builder.CreateVector(constant(1));
  auto one = artifact::CreateExpr(builder, code);
  auto symbol = builder.CreateString("s");
  std::vector<flatbuffers::Offset<artifact::Dispatch>> list;
  for (size_t i = 0; i < width; ++i) {
    auto variant = artifact::CreateVariant(builder, 0, lowLevel, 0, symbol, operands, one);
    auto variants = builder.CreateVector(&variant, 1);
    list.push_back(artifact::CreateDispatch(builder, builder.CreateString(std::to_string(i)), 0, 0, 0, variants));
  }
  auto dispatches = builder.CreateVector(list);
  auto buffer = artifact::CreateBuffer(builder, artifact::BufferKind::Arena, one, 0, width - 1);
  auto buffers = builder.CreateVector(&buffer, 1);
  auto name = builder.CreateString("code");
  auto segment = artifact::CreateSegment(builder, name, 65536 * 1024);
  auto segments = builder.CreateVector(&segment, 1);
  auto executable = artifact::CreateExecutable(builder, 0, lowLevel);
  auto executables = builder.CreateVector(&executable, 1);
  auto program = artifact::CreateProgram(builder, hostArch, buffers, dispatches, executables);
  auto programs = builder.CreateVector(&program, 1);
  artifact::ModelBuilder model(builder);
  model.add_programs(programs);
  model.add_segments(segments);
  artifact::FinishModelBuffer(builder, model.Finish());
  std::string bytes = wrap(builder);
  bytes.resize(65536 * 1024 + 64);
  uint64_t size = bytes.size();
  std::memcpy(bytes.data() + offsetof(ajour_artifact_header, file_size), &size, 8);
  refreshHeader(bytes);
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tryLoad(bytes), AJOUR_BAD_FILE);
  EXPECT_NE(std::string(ajour_last_message()).find("parts of the description share bytes"), std::string::npos)
      << ajour_last_message();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Hostile, NotATable) {
  flatbuffers::FlatBufferBuilder builder;
  artifact::ModelBuilder model(builder);
  artifact::FinishModelBuffer(builder, model.Finish());
  std::string bytes = wrap(builder);
  bytes[64 + 4] = 'X'; // the file identifier
  refreshHeader(bytes);
  EXPECT_EQ(tryLoad(bytes), AJOUR_BAD_FILE);
  EXPECT_STREQ(ajour_last_message(), "artifact: description is not a well-formed table at file offset 64");
}
