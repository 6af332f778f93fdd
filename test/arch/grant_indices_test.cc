// SPDX-License-Identifier: Apache-2.0
//
// A grant has the index of a GPU that its node had when the grant was made. The node may have fewer
// by now, so nobody takes such an index for one of a list: NodeSpec::FindGpu and GpusAmong look it
// up, and say so where there is none.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <regex>
#include <string>
#include <string_view>

#include "test/support/build_paths.h"
#include "test/support/read_text.h"

namespace berth::test::grant_indices_test {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> kSearched = {"base", "topology", "cluster", "scoring",
                                                       "server"};

// What comes between the index and the list: "" = the text has no such place.
std::string UnboundedIn(const std::string& text) {
  static const std::regex kUnbounded(
      R"((\[static_cast<std::size_t>\(\w*[gG]rants?(\.front\(\)|\.back\(\))?\.gpu\)\]))"
      R"(|(\[\w*[gG]rant\.gpu\]))");
  std::smatch found;
  return std::regex_search(text, found, kUnbounded) ? found.str() : "";
}

TEST(GrantIndices, AreLookedUpAndNeverTakenForAPositionInAList) {
  const fs::path root = SourceDir();
  std::size_t looked_at = 0;
  for (const std::string_view room : kSearched) {
    for (const auto& entry : fs::recursive_directory_iterator(root / room)) {
      const fs::path& path = entry.path();
      if (path.extension() != ".h" && path.extension() != ".cc") continue;
      ++looked_at;
      EXPECT_EQ(UnboundedIn(ReadText(path)), "") << path << ": use NodeSpec::FindGpu or GpusAmong";
    }
  }
  EXPECT_GT(looked_at, 100U);
}

TEST(GrantIndices, AreFound) {
  EXPECT_NE(UnboundedIn("node.gpus[static_cast<std::size_t>(grant.gpu)].uuid"), "");
  EXPECT_NE(UnboundedIn("cards[grant.gpu]"), "");
  EXPECT_EQ(UnboundedIn("node.FindGpu(grant.gpu)"), "");
}

}  // namespace
}  // namespace berth::test::grant_indices_test
