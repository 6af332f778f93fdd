// SPDX-License-Identifier: Apache-2.0
//
// What one ecosystem is called is known to its dialect (server/dialects), to the configuration, and
// to documents and tests. The rest of the sources speaks of meanings.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/build_paths.h"
#include "test/support/read_text.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> kWords = {"hami", "koordinator", "instaslice", "volcano",
                                                    "kueue"};
// Not looked at: config, where an ecosystem is switched on by its name, and bench.
constexpr std::array<std::string_view, 5> kLookedAt = {"base", "topology", "cluster", "scoring",
                                                       "server"};

// Files that still name an ecosystem. The list may only become shorter.
const std::set<std::string>& Remaining() {
  static const std::set<std::string> files = {
      // Rules of others that Berth follows or compares itself with: how they choose.
      "scoring/mig/mig_policy.cc", "scoring/mig/mig_policy.h", "topology/domains/domain_choice.h",
      "topology/domains/domain_tree.h", "topology/links/choice_policy.cc",
      "topology/links/choice_policy.h", "topology/mig/mig_start_rule.h", "server/main.cc",
      // The words of a format.
      "server/wire/mig_json.cc"};
  return files;
}

// The first of the words that the text has, in any case; "" = none.
std::string_view WordIn(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string_view word : kWords) {
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
      if (!std::string_view(text).substr(at).starts_with("hamilton")) return word;
    }
  }
  return "";
}

TEST(DialectWords, AreOnlyWhereDialectsAre) {
  const fs::path root = test::SourceDir();
  std::size_t looked_at = 0;
  for (const std::string_view room : kLookedAt) {
    for (const auto& entry : fs::recursive_directory_iterator(root / room)) {
      const fs::path& path = entry.path();
      if (path.extension() != ".h" && path.extension() != ".cc") continue;
      const std::string name = path.lexically_relative(root).generic_string();
      if (name.starts_with("server/dialects/")) continue;
      ++looked_at;
      const std::string_view word = WordIn(test::ReadText(path));
      if (Remaining().contains(name)) {
        EXPECT_NE(word, "") << name << " names no ecosystem any more: take it off the list";
      } else {
        EXPECT_EQ(word, "") << name << ": such words belong into server/dialects";
      }
    }
  }
  EXPECT_GT(looked_at, 100U);
  for (const std::string& name : Remaining()) EXPECT_TRUE(fs::exists(root / name)) << name;
}

TEST(DialectWords, AreFoundInAnyCase) {
  EXPECT_EQ(WordIn("// HAMi's register"), "hami");
  EXPECT_EQ(WordIn("enum class GroupApi { kVolcano }"), "volcano");
  EXPECT_EQ(WordIn("a Hamiltonian cycle"), "");
}

}  // namespace
}  // namespace berth
