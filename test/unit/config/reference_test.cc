// SPDX-License-Identifier: Apache-2.0
#include "test/support/settings_table.h"

#include <algorithm>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "base/file.h"
#include "test/support/build_paths.h"

namespace berth::test::reference_test {
namespace {

TEST(SettingsTable, TheDocumentationHasTheTableOfTheCode) {
  const auto page = ReadFile(SourceDir() + "/docs/configuration.md");
  ASSERT_TRUE(page) << page.error().message;
  const std::size_t begin = page->find("| Setting |");
  ASSERT_NE(begin, page->npos);
  EXPECT_EQ(page->substr(begin), SettingsTable()) << "docs/configuration.md has to end with it";
}

TEST(SettingsTable, ASettingHasItsPathFormDefaultAndMeaning) {
  const std::string table = SettingsTable();
  for (const char* row : {
           "\n| `server.threads` | 1 to 64 | `2` | threads that serve connections |\n",
           "\n| `server.tls.keyFile` | text | | PEM file with the private key |\n",
           "\n| `earmarks.mostGpusPercent` | 0 to 100 | `25` | ",
           "\n| `profiles[].scorers[].weight` | 1 to 1000 | `1` | ",
           "\n| `resources` | list | `4 entries` | ",
           "\n| `machineTypes[].gpus` | 1 to 64 | | ",
           "\n| `machineTypes[].rdma` | true, false | | ",
           "\n| `machineTypes[].pricePerHour` | number, 0 to 1e+09 | | ",
           "\n| `topology.levels[].labels` | list of texts | | ",
           "\n| `logLevel` | debug, info, warn, error | `info` | ",
       }) {
    EXPECT_NE(table.find(row), table.npos) << row << "not in\n" << table;
  }
}

TEST(SettingsTable, EveryRowHasFourColumns) {
  std::istringstream rows(SettingsTable());
  for (std::string row; std::getline(rows, row);) {
    EXPECT_EQ(std::ranges::count(row, '|'), 5) << row;
  }
}

}  // namespace
}  // namespace berth::test::reference_test
