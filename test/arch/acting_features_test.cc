// SPDX-License-Identifier: Apache-2.0
//
// The table of what acts (acting_features.txt) against the worlds and the tests that there are.
#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "test/support/build_paths.h"
#include "test/support/read_text.h"
#include "test/support/worlds.h"

namespace berth::test::acting_features_test {
namespace {

namespace fs = std::filesystem;

struct Row {
  std::string feature;
  std::vector<std::string> sources, tests, left_out;
};

std::string Stripped(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::vector<std::string> PartsOf(const std::string& text, char between) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, between);) {
    if (!Stripped(part).empty()) parts.push_back(Stripped(part));
  }
  return parts;
}

std::vector<Row> Rows() {
  std::vector<Row> rows;
  std::istringstream text(ReadText(SourceDir() + "/test/arch/acting_features.txt"));
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('#')) continue;
    std::vector<std::string> cells(1);
    for (const char c : line) c == '|' ? (void)cells.emplace_back() : cells.back().push_back(c);
    EXPECT_EQ(cells.size(), 4U) << line;
    if (cells.size() != 4) continue;
    rows.push_back({Stripped(cells[0]), PartsOf(cells[1], ' '), PartsOf(cells[2], ' '), {}});
    for (const std::string& left_out : PartsOf(cells[3], ';')) {
      const std::vector<std::string> said = PartsOf(left_out, ':');
      EXPECT_EQ(said.size(), 2U) << "want \"PROPERTY: why\", got " << left_out;
      rows.back().left_out.push_back(said[0]);
    }
  }
  return rows;
}

// By "Suite.Name": the file of each test.
std::map<std::string, std::string> FilesOfTests() {
  static const std::regex kTest(R"(\nTEST(?:_F|_P)?\((\w+),\s+(\w+)\))");
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(SourceDir() + "/test")) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = ReadText(entry.path());
    for (auto found = std::sregex_iterator(text.begin(), text.end(), kTest);
         found != std::sregex_iterator(); ++found) {
      files[(*found)[1].str() + "." + (*found)[2].str()] = entry.path();
    }
  }
  return files;
}

// Whether the file includes the worlds, or a header of test/ that does.
bool DrawsWorlds(const std::string& file) {
  static const std::regex kInclude(R"re(#include "(test/[\w/]+\.h)")re");
  const std::string text = ReadText(file);
  for (auto found = std::sregex_iterator(text.begin(), text.end(), kInclude);
       found != std::sregex_iterator(); ++found) {
    const std::string header = (*found)[1];
    if (header == "test/support/worlds.h") return true;
    const std::string nested = ReadText(SourceDir() + "/" + header);
    if (nested.find("#include \"test/support/worlds.h\"") != nested.npos) return true;
  }
  return false;
}

TEST(ActingFeatures, HaveTestsThatDrawClustersAsPeopleHaveThem) {
  const std::map<std::string, std::string> files = FilesOfTests();
  const std::vector<Row> rows = Rows();
  EXPECT_GT(rows.size(), 5U);
  for (const Row& row : rows) {
    EXPECT_FALSE(row.tests.empty()) << row.feature;
    for (const std::string& test : row.tests) {
      if (test == "-") continue;
      ASSERT_TRUE(files.contains(test)) << row.feature << ": there is no test " << test;
      EXPECT_TRUE(DrawsWorlds(files.at(test))) << test << " draws no worlds";
    }
  }
}

TEST(ActingFeatures, EverySourceThatEvictsKeepsOrClosesIsInARow) {
  static const std::regex kActs(
      R"((evictor\.Evict|rooms\.Put|AgreedVictims|AddedVictims|VictimsOn|EvictableFrom|KeptFor)\()"
      R"(|GpuPodsRefused\{)");
  static const std::set<std::string> kDefines = {"scoring/victims.cc",
                                                 "scoring/earmarks/earmarks.cc"};
  std::set<std::string> listed;
  for (const Row& row : Rows()) listed.insert(row.sources.begin(), row.sources.end());
  for (const std::string& source : listed) {
    EXPECT_TRUE(fs::exists(SourceDir() + "/" + source)) << source;
  }
  for (const char* const room : {"scoring", "server"}) {
    for (const auto& entry : fs::recursive_directory_iterator(SourceDir() + "/" + room)) {
      if (entry.path().extension() != ".cc") continue;
      const std::string path = fs::relative(entry.path(), SourceDir());
      if (kDefines.contains(path)) continue;
      if (!std::regex_search(ReadText(entry.path()), kActs)) continue;
      EXPECT_TRUE(listed.contains(path)) << path << " acts; which feature is it of?";
    }
  }
}

TEST(ActingFeatures, LeaveOutNothingButPropertiesOfWorlds) {
  std::set<std::string> names;
  for (const PropertyWord& word : kWorldProperties) names.emplace(word.name);
  EXPECT_EQ(names.size(), kWorldProperties.size());
  for (const Row& row : Rows()) {
    for (const std::string& name : row.left_out) {
      EXPECT_TRUE(names.contains(name)) << row.feature << ": no property is called " << name;
    }
  }
}

// As many as there are words: a property that nobody draws has no word.
TEST(ActingFeatures, MeetEveryPropertyInSomeWorlds) {
  std::set<WorldProperty> drawn;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) drawn.merge(PropertiesOf(World(seed)));
  World world(1, {.held_percent = 40});
  ClusterState state;
  world.Populate(state);
  Autoscaler scaler(world);
  SimClock clock;
  for (int i = 0; i < 60; ++i) {
    scaler.Step(state, world.waiting(), clock.Now());
    clock.Advance(std::chrono::seconds(30));
  }
  if (scaler.taken() > 0 && scaler.brought() > 0) drawn.insert(WorldProperty::kAutoscaler);
  for (const PropertyWord& word : kWorldProperties) {
    EXPECT_TRUE(drawn.contains(word.property)) << "no world has " << word.name;
  }
}

}  // namespace
}  // namespace berth::test::acting_features_test
