//===- FilesTest.cpp - Whole files in, whole files out --------------------===//

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

} // namespace
