//===- ReferenceTest.cpp - conformance of the importer and the reference ------------===//
#include "Conformance.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace ajour::conformance;

/// Where Debian's libonnx-testdata puts its cases; AJOUR_ONNX_TESTDATA names another place.
static std::string testData() {
  const char *path = getenv("AJOUR_ONNX_TESTDATA");
  return path ? path : "/usr/share/libonnx-testdata/data";
}

/// A refusal without what names the case: its file, node and types.
static std::string kindOf(const std::string &message) {
  std::string first = message.substr(0, message.find('\n'));
  size_t type = first.find(" (");
  size_t end = first.find(", #");
  size_t says = first.find("): ");
  if (type == std::string::npos || end == std::string::npos || says == std::string::npos)
    return first.substr(first.find(": error: ") == std::string::npos ? 0 : first.find(": error: ") + 9);
  std::string text = first.substr(says + 3);
  return first.substr(type + 2, end - type - 2) + ": " + text.substr(0, text.find(" ["));
}

TEST(Conformance, ImportAndReference) {
  std::vector<std::string> cases = findCases(testData());
  if (cases.empty())
    GTEST_SKIP() << "libonnx-testdata is absent: no cases below " << testData();
  const char *filter = getenv("AJOUR_CONFORMANCE_FILTER");
  std::map<std::string, int> refusals;
  int passed = 0, refused = 0, wrong = 0;
  for (const std::string &folder : cases) {
    if (filter && folder.find(filter) == std::string::npos)
      continue;
    CaseResult result = runCase(folder, interpretModule);
    if (result.verdict == Verdict::passed) {
      ++passed;
    } else if (result.verdict == Verdict::refused) {
      ++refused;
      ++refusals[kindOf(result.message)];
      EXPECT_FALSE(result.message.empty()) << result.name << " is refused without a message";
    } else {
      ++wrong;
      ADD_FAILURE() << "WRONG " << result.name << ": " << result.message;
    }
  }
  for (const auto &[message, count] : refusals)
    printf("refused %4d  %s\n", count, message.c_str());
  printf("passed %d, refused %d, wrong %d\n", passed, refused, wrong);
  EXPECT_EQ(wrong, 0);
  if (!filter)
    EXPECT_GE(passed, 700);
}
