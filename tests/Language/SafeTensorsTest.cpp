// safetensors files: what is read, and what is refused with which words.
#include "ajour/Import/SafeTensors.h"

#include "ajour/ABI/ElementTypes.h"

#include <gtest/gtest.h>

using namespace ajour;

namespace {

std::string fileOf(const std::string &header, size_t data, uint64_t length) {
  std::string bytes(reinterpret_cast<const char *>(&length), 8);
  return bytes + header + std::string(data, 'd');
}
std::string problemOf(const std::string &header, size_t data = 16) {
  safetensors::File file;
  return safetensors::parse(fileOf(header, data, header.size()), file);
}

TEST(SafeTensors, ReadsTensors) {
  safetensors::File file;
  std::string header = R"({"__metadata__": {"format": "pt"}, "w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}})";
  std::string bytes = fileOf(header, 16, header.size());
  ASSERT_EQ(safetensors::parse(bytes, file), "");
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.tensors[0].elementType, uint32_t(AJOUR_F32));
  EXPECT_EQ(file.tensors[0].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(file.tensors[0].bytes.size(), 16u);
}

TEST(SafeTensors, EveryTruncationIsRefused) {
  std::string header = R"({"w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}})";
  std::string bytes = fileOf(header, 16, header.size());
  for (size_t size = 0; size < bytes.size(); ++size) {
    safetensors::File file;
    EXPECT_NE(safetensors::parse(bytes.substr(0, size), file), "") << size;
  }
}

TEST(SafeTensors, HostileFieldsAreNamed) {
  safetensors::File file;
  EXPECT_EQ(safetensors::parse(fileOf("{}", 0, 0xfffffffffffffff8u), file),
            "its header of 18446744073709551608 bytes does not fit (the file has 2 bytes behind the length, at most 104857600 are allowed)");
  EXPECT_EQ(problemOf("[]"), "its header is no JSON object");
  EXPECT_EQ(problemOf("{"), "its header is no JSON object");
  auto one = [](const std::string &fields) { return problemOf("{\"w\": {" + fields + "}}"); };
  EXPECT_EQ(one(R"("dtype": "F12", "shape": [1], "data_offsets": [0, 4])"),
            "tensor 'w' has the dtype \"F12\"; F64, F32, F16, BF16, I64, I32, I16, I8, U8 and BOOL are known");
  EXPECT_EQ(one(R"("dtype": "F32", "shape": [1000, 1000], "data_offsets": [0, 4])"),
            "tensor 'w' takes 4000000 bytes by its shape and dtype, its data_offsets give 4");
  EXPECT_EQ(one(R"("dtype": "F32", "shape": [-1], "data_offsets": [0, 4])"), "tensor 'w': its shape is not a list of at most 8 sizes");
  EXPECT_EQ(one(R"("dtype": "F32", "shape": [1], "data_offsets": [16, 20])"),
            "tensor 'w': its data_offsets are not a range within the 16 bytes of data");
  EXPECT_EQ(one(R"("dtype": "F32", "shape": [1], "data_offsets": [4, 0])"),
            "tensor 'w': its data_offsets are not a range within the 16 bytes of data");
  EXPECT_EQ(one(R"("dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 4])"),
            "tensor 'w': its shape has more elements than any file can hold");
}

} // namespace
