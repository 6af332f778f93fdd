// SPDX-License-Identifier: Apache-2.0
//
// Every number that SECURITY.md states has a test that pushes against it, by stated_bounds.txt.
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/build_paths.h"
#include "test/support/read_text.h"

namespace berth::test::stated_bounds_test {
namespace {

namespace fs = std::filesystem;
using Counts = std::map<std::string, int>;

// "64 KiB", "1,000", "24 million": how often the text has each. Names with a number in them
// (DNS-1123) are none, nor are the status codes that it mentions.
Counts NumbersIn(const std::string& text) {
  static const std::regex kNumber(
      R"((^|[^-\w.,])(\d{1,3}(?:,\d{3})+|\d+)(?:\s+(KiB|MiB|GiB|bytes|million|s)\b)?(?![\w-]))");
  const std::set<std::string> statuses = {"400", "413", "503"};
  Counts counts;
  for (auto found = std::sregex_iterator(text.begin(), text.end(), kNumber);
       found != std::sregex_iterator(); ++found) {
    const std::string unit = (*found)[3];
    if (unit.empty() && statuses.contains((*found)[2])) continue;
    ++counts[(*found)[2].str() + (unit.empty() ? "" : " " + unit)];
  }
  return counts;
}

struct Listed {
  std::string number;
  std::vector<std::string> tests;
};

std::vector<Listed> ListedBounds() {
  std::vector<Listed> bounds;
  std::istringstream text(ReadText(SourceDir() + "/test/arch/stated_bounds.txt"));
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('#')) continue;
    const std::size_t first = line.find(" | "), last = line.rfind(" | ");
    Listed bound{line.substr(0, first), {}};
    std::istringstream names(last == first ? "" : line.substr(last + 3));
    for (std::string name; names >> name;) bound.tests.push_back(name);
    EXPECT_FALSE(bound.tests.empty()) << line;
    bounds.push_back(std::move(bound));
  }
  return bounds;
}

// "Suite.Name" of all tests in the tree.
std::set<std::string> TestNames() {
  static const std::regex kTest(R"(\nTEST(?:_F|_P)?\((\w+),\s+(\w+)\))");
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(SourceDir() + "/test")) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = ReadText(entry.path());
    for (auto found = std::sregex_iterator(text.begin(), text.end(), kTest);
         found != std::sregex_iterator(); ++found) {
      names.insert((*found)[1].str() + "." + (*found)[2].str());
    }
  }
  return names;
}

TEST(StatedNumbers, AreFoundInAText) {
  EXPECT_EQ(NumbersIn("at most 64 KiB (1,000 levels), 24 million values; 503, 4xx and DNS-1123"),
            (Counts{{"64 KiB", 1}, {"1,000", 1}, {"24 million", 1}}));
  EXPECT_EQ(NumbersIn("32 MiB, 65,536 pods | after 30 s by default | 4 MiB"),
            (Counts{{"32 MiB", 1}, {"65,536", 1}, {"30 s", 1}, {"4 MiB", 1}}));
}

// A number is there as often as it is stated: each time it is of something else.
TEST(StatedNumbers, OfSecurityAreListedWithTheirTests) {
  const Counts stated = NumbersIn(ReadText(SourceDir() + "/SECURITY.md"));
  EXPECT_GT(stated.size(), 20U);
  Counts listed;
  for (const Listed& bound : ListedBounds()) ++listed[bound.number];
  for (const auto& [number, times] : stated) {
    EXPECT_EQ(listed[number], times) << "SECURITY.md states " << number << " so often";
  }
  for (const auto& [number, times] : listed) {
    EXPECT_TRUE(stated.contains(number)) << "SECURITY.md does not state " << number;
  }
}

TEST(StatedNumbers, AreListedWithTestsThatThereAre) {
  const std::set<std::string> tests = TestNames();
  EXPECT_GT(tests.size(), 1'000U);
  for (const Listed& bound : ListedBounds()) {
    for (const std::string& name : bound.tests) EXPECT_TRUE(tests.contains(name)) << name;
  }
}

}  // namespace
}  // namespace berth::test::stated_bounds_test
