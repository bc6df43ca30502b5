//===- InputsTest.cpp - Files as model inputs, answers as lines -----------===//

#include "ToolSupport/Inputs.h"
#include "ToolSupport/Npy.h"
#include "ToolSupport/Outputs.h"
#include "Tools/TempDirectory.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace ajour::tools;

namespace {

const std::vector<TensorInfo> one = {{"x", AJOUR_F32, {1, 2}}};
const std::vector<TensorInfo> two = {{"a=b", AJOUR_F32, {1, 2}}, {"ids", AJOUR_I64, {-1}}};

TEST(Inputs, SpecsNameAnInputAndAType) {
  std::vector<InputFile> files = resolveInputFiles({"ids=i=1.bin:i32", "a=b=x.npy"}, two);
  EXPECT_EQ(files[0].path, "x.npy");
  EXPECT_EQ(files[0].rawType, 0u);
  EXPECT_EQ(files[1].path, "i=1.bin");
  EXPECT_EQ(files[1].rawType, uint32_t(AJOUR_I32));
  EXPECT_EQ(resolveInputFiles({"dir:name/x.npy"}, one)[0].path, "dir:name/x.npy");
}

TEST(Inputs, WrongSpecsListTheNames) {
  const std::string names = "'a=b' (f32 1x2), 'ids' (i64 ?)";
  EXPECT_EQ(messageOf([] { resolveInputFiles({"x.npy"}, two); }),
            "--input x.npy: expected NAME=FILE with one of the model's inputs " + names);
  EXPECT_EQ(messageOf([] { resolveInputFiles({"y=f.npy"}, one); }),
            "--input y=f.npy: expected NAME=FILE with one of the model's inputs 'x' (f32 1x2)");
  EXPECT_EQ(messageOf([] { resolveInputFiles({"ids=1.npy", "ids=2.npy"}, two); }),
            "--input ids=2.npy: input 'ids' (i64 ?) already has a file");
  EXPECT_EQ(messageOf([] { resolveInputFiles({"ids=1.npy"}, two); }),
            "input 'a=b' (f32 1x2) has no file; give --input a=b=FILE");
}

TEST(Inputs, FilesAreReadByTheirExtension) {
  TempDirectory directory;
  HostTensor wide = makeTensor(AJOUR_F64, {2});
  setReal(wide, 1, 3);
  writeNpy(directory.file("x.npy"), wide);
  HostTensor tensor = loadInput({0, directory.file("x.npy"), 0}, one[0], {});
  EXPECT_EQ(tensor.type, uint32_t(AJOUR_F32));
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(getReal(tensor, 1), 3);
  writeFile(directory.file("x.bin"), std::string_view("\x01\x00\xfe\xff", 4));
  tensor = loadInput({0, directory.file("x.bin"), AJOUR_I16}, one[0], {});
  EXPECT_EQ(getReal(tensor, 1), -2);
  writeFile(directory.file("three.bin"), "123");
  EXPECT_EQ(messageOf([&] { loadInput({0, directory.file("three.bin"), AJOUR_I16}, one[0], {}); }),
            directory.file("three.bin") + ": has 3 bytes, not a whole number of i16 elements");
  EXPECT_EQ(messageOf([&] { loadInput({0, directory.file("three.bin"), AJOUR_U8}, one[0], {}); }),
            directory.file("three.bin") + ": has 3 elements, input 'x' (f32 1x2) takes 2");
  HostTensor wrong = makeTensor(AJOUR_F32, {2, 1});
  writeNpy(directory.file("wrong.npy"), wrong);
  EXPECT_EQ(messageOf([&] { loadInput({0, directory.file("wrong.npy"), 0}, one[0], {}); }),
            directory.file("wrong.npy") + ": has shape 2x1, expected 1x2 for input 'x'");
}

TEST(Inputs, FreeSizesFollowFromTheElements) {
  EXPECT_EQ(fillFreeSizes({"x", AJOUR_F32, {-1, 3}}, 12, "f"), (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(fillFreeSizes({"x", AJOUR_F32, {-1, 3, -1}}, 12, "f"), (std::vector<int64_t>{4, 3, 1}));
  EXPECT_EQ(messageOf([] { fillFreeSizes({"x", AJOUR_F32, {-1, 3}}, 13, "f"); }),
            "f: has 13 elements, input 'x' (f32 ?x3) takes a multiple of 3");
}

TEST(Inputs, RandomValuesAreTheSameForASeed) {
  TensorInfo info{"x", AJOUR_F32, {4, -1}};
  EXPECT_EQ(randomInput(info, 1).data, randomInput(info, 1).data);
  EXPECT_NE(randomInput(info, 1).data, randomInput(info, 2).data);
  EXPECT_EQ(randomInput(info, 1).shape, (std::vector<int64_t>{4, 1}));
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_GE(getReal(randomInput(info, 1), i), 0);
    EXPECT_LT(getReal(randomInput(info, 1), i), 1);
  }
  HostTensor bytes = randomInput({"x", AJOUR_I8, {4096}}, 1);
  double low = 0, high = 0;
  for (int64_t i = 0; i < 4096; ++i) {
    low = std::min(low, getReal(bytes, i));
    high = std::max(high, getReal(bytes, i));
  }
  EXPECT_EQ(low, -128);
  EXPECT_EQ(high, 127);
}

TEST(Outputs, TopIsOrderedByScoreThenIndex) {
  HostTensor tensor = makeTensor(AJOUR_F32, {1, 5});
  const double values[] = {1, NAN, 3, 1, 2};
  for (int64_t i = 0; i < 5; ++i)
    setReal(tensor, i, values[i]);
  TensorInfo info{"y", AJOUR_F32, {1, 5}};
  EXPECT_EQ(formatTop(topElements(tensor, info, 3), {}, ""), "2 3\n4 2\n0 1\n");
  EXPECT_EQ(topElements(tensor, info, 9).size(), 5u);
  EXPECT_EQ(topElements(tensor, info, 9).back().index, 1);
}

TEST(Outputs, TopDequantisesAndNames) {
  HostTensor tensor = makeTensor(AJOUR_U8, {3});
  setReal(tensor, 1, 138);
  TensorInfo info{"y", AJOUR_U8, {3}, 0.5f, 10};
  std::vector<RankedElement> top = topElements(tensor, info, 1);
  EXPECT_EQ(formatTop(top, {"cat", "big dog", "fish"}, "labels.txt"), "1 64 big dog\n");
  EXPECT_EQ(messageOf([&] { formatTop(top, {"cat"}, "labels.txt"); }),
            "labels.txt: has 1 labels, the answer is number 1 counted from 0");
}

TEST(Outputs, LinesShowTheFirstValues) {
  HostTensor tensor = makeTensor(AJOUR_F32, {2, 2});
  setReal(tensor, 0, 0.1f);
  setReal(tensor, 3, -2);
  EXPECT_EQ(formatOutput("y", tensor), "y f32 2x2 0.1 0 0 -2\n");
  EXPECT_EQ(formatOutput("y", tensor, 1), "y f32 2x2 0.1 ...\n");
  HostTensor scalar = makeTensor(AJOUR_U64, {});
  setInteger(scalar, 0, -1);
  EXPECT_EQ(formatOutput("n", scalar), "n ui64 scalar 18446744073709551615\n");
}

TEST(Outputs, FileNamesStayInTheDirectory) {
  std::vector<TensorInfo> infos(5);
  infos[0].name = "../x";
  infos[1].name = "a:b";
  infos[2].name = "a/b";
  infos[3].name = "";
  infos[4].name = "StatefulPartitionedCall:0";
  EXPECT_EQ(outputFileNames(infos),
            (std::vector<std::string>{"_.._x", "a_b", "a_b_2", "_", "StatefulPartitionedCall_0"}));
}

} // namespace
