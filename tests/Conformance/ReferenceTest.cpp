//===- ReferenceTest.cpp - conformance of the importer and the reference ------------===//
#include "Conformance.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace ajour::conformance;

TEST(Conformance, ImportAndReference) {
  std::vector<std::string> cases = findCases(testData());
  if (cases.empty())
    GTEST_SKIP() << "libonnx-testdata is absent: no cases below " << testData();
  const char *filter = getenv("AJOUR_CONFORMANCE_FILTER");
  Tally tally;
  for (const std::string &folder : cases) {
    if (filter && folder.find(filter) == std::string::npos)
      continue;
    CaseResult result = runCase(folder, interpretModule);
    tally.add(result);
    if (result.verdict == Verdict::wrong)
      ADD_FAILURE() << "WRONG " << result.name << ": " << result.message;
    else if (result.verdict == Verdict::refused)
      EXPECT_FALSE(result.message.empty()) << result.name << " is refused without a message";
  }
  tally.print();
  if (!filter)
    EXPECT_GE(tally.passed, 700);
}
