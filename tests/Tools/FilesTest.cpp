//===- FilesTest.cpp - Whole files in, whole files out --------------------===//

#include "ToolSupport/Checks.h"
#include "ToolSupport/Progress.h"
#include "Tools/TempDirectory.h"

#include <gtest/gtest.h>

using namespace ajour::tools;

namespace {

size_t entries(const std::string &path) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
}

TEST(Files, OutputAppearsOnlyWithCommit) {
  TempDirectory directory;
  std::string path = directory.file("out");
  writeFile(path, "old");
  {
    OutputFile file(path);
    file.write("half");
  }
  EXPECT_EQ(readFile(path), bytesOf("old"));
  EXPECT_EQ(entries(directory.path), 1u);
  {
    OutputFile file(path);
    file.write("new ");
    file.write("text");
    file.commit();
  }
  EXPECT_EQ(readFile(path), bytesOf("new text"));
  EXPECT_EQ(entries(directory.path), 1u);
}

TEST(Files, MessagesNameTheFile) {
  TempDirectory directory;
  EXPECT_EQ(messageOf([&] { readFile(directory.file("none")); }),
            directory.file("none") + ": cannot open: No such file or directory");
  EXPECT_EQ(messageOf([&] { readFile(directory.path); }), directory.path + ": is a directory, expected a file");
  EXPECT_EQ(messageOf([&] { OutputFile(directory.file("a/b")); }),
            directory.file("a/b") + ": cannot write: No such file or directory");
  writeFile(directory.file("big"), std::string(100, 'x'));
  EXPECT_EQ(messageOf([&] { readFile(directory.file("big"), 99); }),
            directory.file("big") + ": is larger than 99 bytes");
}

TEST(Files, DevicesAreWrittenToNotReplaced) {
  TempDirectory directory;
  std::filesystem::create_symlink("/dev/full", directory.file("full"));
  EXPECT_EQ(messageOf([&] { writeFile(directory.file("full"), "text"); }),
            directory.file("full") + ": cannot write: No space left on device");
  std::filesystem::create_symlink("/dev/null", directory.file("null"));
  writeFile(directory.file("null"), "text");
  EXPECT_TRUE(std::filesystem::is_character_file(directory.file("null")));
  EXPECT_EQ(entries(directory.path), 2u);
  EXPECT_EQ(messageOf([&] { writeFile(directory.path, "text"); }), directory.path + ": cannot write: Is a directory");
}

TEST(Files, NamesAndLines) {
  EXPECT_EQ(extensionOf("a.b/c.PNG"), "png");
  EXPECT_EQ(extensionOf("a.b/c"), "");
  EXPECT_EQ(baseName("a/b.c"), "b.c");
  TempDirectory directory;
  writeFile(directory.file("labels"), "\xef\xbb\xbf" "one\r\ntwo\n\nfour\n");
  EXPECT_EQ(readLines(directory.file("labels")), (std::vector<std::string>{"one", "two", "", "four"}));
}

TEST(Progress, Text) {
  EXPECT_EQ(formatProgress("weights", 3, 10, 120000000, 6), "weights 3/10, 120 MB, 14 s left");
  EXPECT_EQ(formatProgress("link", 0, 0, 0, 6), "link");
}

TEST(Progress, SilentAtFirstAndWithoutATerminal) {
  testing::internal::CaptureStderr();
  {
    Progress forced(true), none(false);
    forced.begin("a", 2);
    forced.update(1);
    none.begin("a", 2);
    none.update(1);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, MemoryIsSeen) {
  EXPECT_GT(residentBytes(), 0u);
  uint64_t now = residentBytes(); // first: asking may itself add a page
  EXPECT_GE(peakResidentBytes(), now);
}

TEST(Files, DevicesThatDoNotEndAreGivenUp) {
  EXPECT_EQ(messageOf([] { readFile("/dev/zero"); }),
            "/dev/zero: is larger than 268435456 bytes, the most that is read from a pipe or device");
  EXPECT_TRUE(readFile("/dev/null").empty());
}

TEST(Files, OutputsAreNoInputs) {
  TempDirectory directory;
  std::string model = directory.file("m.onnx"), other = directory.file("o.json"), link = directory.file("link");
  writeFile(model, "model");
  std::filesystem::create_symlink(model, link);
  auto refusal = [&](const std::vector<OutputPath> &outputs) { return messageOf([&] { checkOutputPaths(outputs, {model}); }); };
  std::string text = ": would overwrite a file that is read; give another name";
  for (const std::string &path : {model, link, directory.path + "/./m.onnx"})
    EXPECT_EQ(refusal({{"--json", path}}), "--json " + path + text);
  EXPECT_EQ(refusal({{"--json", other}, {"--plot", directory.path + "/../" + baseName(directory.path) + "/o.json"}}),
            "--plot " + directory.path + "/../" + baseName(directory.path) + "/o.json: would overwrite what --json writes; give another name");
  EXPECT_NO_THROW(checkOutputPaths({{"--json", ""}, {"--plot", ""}, {"--json", other}, {"--report", "/dev/null"}, {"--plot", "/dev/null"}}, {model}));
  // A folder that is read stands for what lies in it.
  EXPECT_EQ(messageOf([&] { checkOutputPaths({{"--report", model}}, {directory.path}); }), "--report " + model + text);
  EXPECT_EQ(messageOf([&] { checkWritable(directory.path); }), directory.path + ": cannot write: Is a directory");
  EXPECT_EQ(messageOf([&] { checkWritable(directory.file("a/b")); }), directory.file("a/b") + ": cannot write: No such file or directory");
  EXPECT_NO_THROW(checkWritable(other));
}

TEST(Files, ChecksOfNumbers) {
  auto whole = wholeNumber(1, 300);
  for (const char *good : {"1", "300"})
    EXPECT_EQ(whole(good), "");
  for (const char *bad : {"0", "301", "-1", "1.5", "", " 1", "1e2", "99999999999999999999"})
    EXPECT_EQ(whole(bad), "'" + std::string(bad) + "' is no whole number from 1 to 300");
  auto share = realNumber(0, 1), positive = realNumber(0, 1e30, /*open=*/true);
  for (const char *good : {"0", "1", "0.5", "1e-3"})
    EXPECT_EQ(share(good), "");
  for (const char *bad : {"nan", "inf", "-0.1", "1.1", "x", ""})
    EXPECT_EQ(share(bad), "'" + std::string(bad) + "' is no number of at least 0 and at most 1");
  EXPECT_EQ(positive("0"), "'0' is no number above 0 and at most 1e+30");
  EXPECT_EQ(finiteNumber()("-inf"), "'-inf' is no finite number");
  EXPECT_EQ(finiteNumber()("-3.5"), "");
}

} // namespace
