// GGUF files: what is read, and what is refused with which words.
#include "Import/GGUF/Reader.h"
#include "ajour/Import/Tokenizer.h"

#include "Support/ModelFiles.h"

#include <cstring>
#include <fstream>

using namespace ajour;
using gguf::ValueType;

namespace {

/// Writes the bytes of a file.
class Writer {
public:
  std::string bytes;
  template <typename T> Writer &put(T value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof(T));
    return *this;
  }
  Writer &text(const std::string &value) {
    put<uint64_t>(value.size());
    bytes += value;
    return *this;
  }
  static Writer header(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    Writer w;
    w.bytes = "GGUF";
    w.put(version).put(tensors).put(keys);
    return w;
  }
  Writer &key(const std::string &name, ValueType type) { return text(name).put(uint32_t(type)); }
  Writer &tensor(const std::string &name, std::vector<uint64_t> dims, uint32_t type, uint64_t offset) {
    text(name).put(uint32_t(dims.size()));
    for (uint64_t d : dims)
      put(d);
    return put(type).put(offset);
  }
  Writer &pad(size_t alignment = 32) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
};

std::string problemOf(const std::string &bytes) {
  gguf::File file;
  std::string problem;
  if (gguf::parse(llvm::MemoryBufferRef(bytes, "test"), file, problem))
    return "";
  return problem;
}

TEST(GGUF, ReadsValuesAndTensors) {
  Writer w = Writer::header(1, 3);
  w.key("n", ValueType::U32).put<uint32_t>(7);
  w.key("list", ValueType::Array).put(uint32_t(ValueType::F32)).put<uint64_t>(2).put(1.5f).put(-2.0f);
  w.key("names", ValueType::Array).put(uint32_t(ValueType::String)).put<uint64_t>(2).text("x").text("yz");
  w.tensor("w", {2, 3}, 0, 0).pad();
  for (int i = 0; i < 6; ++i)
    w.put(float(i));
  gguf::File file;
  std::string problem;
  ASSERT_TRUE(gguf::parse(llvm::MemoryBufferRef(w.bytes, "test"), file, problem)) << problem;
  EXPECT_EQ(file.find("n")->integer(), 7);
  EXPECT_EQ(file.find("list")->number(1), -2.0);
  EXPECT_EQ(file.find("list")->number(2), std::nullopt);
  EXPECT_EQ(file.find("names")->string(1), "yz");
  ASSERT_NE(file.findTensor("w"), nullptr);
  EXPECT_EQ(file.findTensor("w")->shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(file.findTensor("w")->bytes.size(), 24u);
}

TEST(GGUF, EveryTruncationIsRefused) {
  Writer w = Writer::header(1, 1);
  w.key("n", ValueType::String).text("value");
  w.tensor("w", {32}, 8, 0).pad();
  w.bytes.append(34, 'q');
  EXPECT_EQ(problemOf(w.bytes), "");
  for (size_t size = 0; size < w.bytes.size(); ++size)
    EXPECT_NE(problemOf(w.bytes.substr(0, size)), "") << size;
}

TEST(GGUF, HostileFieldsAreNamed) {
  EXPECT_EQ(problemOf(std::string(24, 'x')), "byte 0: found no GGUF signature");
  EXPECT_EQ(problemOf(Writer::header(0, 0, 9).bytes), "byte 8: GGUF version 9, versions 2 and 3 are known");
  EXPECT_EQ(problemOf(Writer::header(0, 0, 3u << 24).bytes), "byte 8: the file is big-endian; convert it to little-endian first");
  EXPECT_EQ(problemOf(Writer::header(0, 1ull << 60).bytes), "byte 24: 1152921504606846976 metadata entries do not fit into a file of 24 bytes");
  EXPECT_EQ(problemOf(Writer::header(1ull << 60, 0).bytes), "byte 24: 1152921504606846976 tensors do not fit into a file of 24 bytes");
  EXPECT_EQ(problemOf(Writer::header(0, 1).key("", ValueType::U8).put<uint8_t>(1).bytes), "byte 32: metadata entry 0 has an empty key");
  EXPECT_EQ(problemOf(Writer::header(0, 1).put(1ull << 63).pad().bytes), "byte 32: a metadata key is 9223372036854775808 bytes long, at most 65535 are allowed");
  EXPECT_EQ(problemOf(Writer::header(0, 1).key("s", ValueType::String).put(1ull << 63).pad().bytes),
            "byte 45: metadata 's' is 9223372036854775808 bytes long, at most 64 are allowed");
  EXPECT_EQ(problemOf(Writer::header(0, 1).text("k").put<uint32_t>(13).put<uint64_t>(0).bytes), "byte 37: metadata 'k' has the unknown type 13, 0 to 12 are known");
  EXPECT_EQ(problemOf(Writer::header(0, 1).key("k", ValueType::Array).put<uint32_t>(9).put<uint64_t>(1).bytes),
            "byte 49: metadata 'k' is an array of arrays, which this format's writers do not use");
  EXPECT_EQ(problemOf(Writer::header(0, 1).key("k", ValueType::Array).put<uint32_t>(10).put(1ull << 62).bytes),
            "byte 49: metadata 'k' has 4611686018427387904 elements, which no file can hold");
  EXPECT_EQ(problemOf(Writer::header(0, 2).key("k", ValueType::U8).put<uint8_t>(1).key("k", ValueType::U8).put<uint8_t>(1).bytes),
            "byte 52: metadata 'k' is there twice");
}

TEST(GGUF, HostileTensorsAreNamed) {
  auto one = [](std::vector<uint64_t> dims, uint32_t type, uint64_t offset) {
    return problemOf(Writer::header(1, 0).tensor("w", std::move(dims), type, offset).pad().bytes);
  };
  EXPECT_EQ(one({1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, 0), "byte 37: tensor 'w' has 9 dimensions, at most 4 are allowed");
  EXPECT_EQ(one({1, 0}, 0, 0), "byte 53: tensor 'w': dimension 1 is 0");
  EXPECT_EQ(one({1, (1ull << 42) + 1}, 0, 0), "byte 53: tensor 'w': dimension 1 is 4398046511105, which makes more than 2^40 elements");
  EXPECT_EQ(one({4}, 99, 0), "byte 57: tensor 'w' has the type number 99, which is not supported; supported are F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, "
                             "Q5_1, Q2_K to Q6_K, IQ4_NL, TQ1_0 and TQ2_0");
  EXPECT_EQ(one({4}, 8, 0), "byte 57: tensor 'w': its rows have 4 elements, Q8_0 needs a multiple of 32");
  EXPECT_EQ(one({64}, 0, 0), "byte 57: tensor 'w': its 256 bytes at offset 0 of the data lie outside the file of 64 bytes");
  EXPECT_EQ(one({1}, 0, 8), "byte 57: tensor 'w': its offset 8 is not a multiple of the alignment 32");
  EXPECT_EQ(one({1}, 0, ~31ull), "byte 57: tensor 'w': its 4 bytes at offset 18446744073709551584 of the data lie outside the file of 64 bytes");
  EXPECT_EQ(problemOf(Writer::header(2, 0).tensor("w", {1}, 0, 0).tensor("w", {1}, 0, 32).pad().bytes), "byte 66: two tensors are called 'w'");
  auto alignment = [](uint32_t value) {
    return problemOf(Writer::header(0, 1).key("general.alignment", ValueType::U32).put(value).bytes);
  };
  EXPECT_EQ(alignment(0), "byte 57: general.alignment is 0, expected a power of two");
  EXPECT_EQ(alignment(48), "byte 57: general.alignment is 48, expected a power of two");
  EXPECT_EQ(problemOf(Writer::header(0, 1).key("general.alignment", ValueType::String).text("32").bytes),
            "byte 63: general.alignment is not an unsigned 32-bit number");
}

TEST(GGUF, FlippedBytesDoNoHarm) {
  AJOUR_MODEL_FILE(path, "stories260k/stories260K-q4_0.gguf");
  std::string good = test::readFile(path).substr(0, 16000);
  for (size_t at = 0; at < 400; ++at)
    for (uint8_t flip : {uint8_t(1), uint8_t(0x80), uint8_t(0xff)}) {
      std::string bad = good;
      bad[at] ^= char(flip);
      problemOf(bad);
    }
}

/// A vocabulary of one kind with a field that can be replaced.
std::string vocabularyProblem(ValueType scoreType, uint32_t eos) {
  Writer w = Writer::header(0, 5);
  w.key("tokenizer.ggml.model", ValueType::String).text("llama");
  w.key("tokenizer.ggml.tokens", ValueType::Array).put(uint32_t(ValueType::String)).put<uint64_t>(2).text("<s>").text("a");
  w.key("tokenizer.ggml.scores", ValueType::Array).put(uint32_t(scoreType)).put<uint64_t>(2);
  for (int i = 0; i < 2; ++i)
    if (scoreType == ValueType::F32)
      w.put(0.0f);
    else
      w.put<uint8_t>(0);
  w.key("tokenizer.ggml.bos_token_id", ValueType::U32).put<uint32_t>(0);
  w.key("tokenizer.ggml.eos_token_id", ValueType::U32).put(eos);
  std::string path = testing::TempDir() + "ajour-vocabulary.gguf";
  std::ofstream(path, std::ios::binary) << w.bytes;
  std::vector<uint8_t> description;
  std::string problem = importTokenizer(path, description);
  remove(path.c_str());
  return problem.empty() ? "" : problem.substr(problem.find(": ") + 2);
}

TEST(GGUF, VocabulariesAreChecked) {
  EXPECT_EQ(vocabularyProblem(ValueType::F32, 1), "");
  EXPECT_EQ(vocabularyProblem(ValueType::F32, UINT32_MAX), "");
  EXPECT_EQ(vocabularyProblem(ValueType::U8, 1), "tokenizer.ggml.scores is not an array of 32-bit floats");
  EXPECT_EQ(vocabularyProblem(ValueType::F32, 2), "tokenizer.ggml.eos_token_id is 2, there are 2 tokens");
}

} // namespace
