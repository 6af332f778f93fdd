// SPDX-License-Identifier: Apache-2.0
//
// A description (cluster/values/describe.h) does not compile without all members of its value. That
// it lists each of them, too, is checked here.
#include <gtest/gtest.h>

#include <iterator>
#include <regex>
#include <string>

#include "test/support/build_paths.h"
#include "test/support/read_text.h"

namespace berth::test::described_members_test {
namespace {

int CountOf(const std::string& text, const std::regex& pattern) {
  return static_cast<int>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), pattern), {}));
}

TEST(DescribedMembers, EachIsListedOnce) {
  const std::regex description(
      R"(OneOf<([\w, ]+)> V>\s[^{]*\{\s*auto& \[([^\]]*)\] =\s+value;([^}]*)\})");
  const std::regex name(R"(\w+)"), quoted("\"[^\"]*\"");
  int values = 0;
  for (const char* file : {"cluster/values/describe.h", "cluster/node/describe_node.h"}) {
    const std::string text = ReadText(SourceDir() + "/" + file);
    for (std::sregex_iterator found(text.begin(), text.end(), description), end; found != end;
         ++found, ++values) {
      const std::string members = (*found)[2];
      const std::string list = std::regex_replace((*found)[3].str(), quoted, "");
      for (std::sregex_iterator at(members.begin(), members.end(), name); at != end; ++at) {
        EXPECT_EQ(CountOf(list, std::regex("\\b" + at->str() + "\\b")), 1)
            << (*found)[1] << "::" << at->str();
      }
    }
    const int empty = CountOf(text, std::regex(R"(MembersOf\(V&\))"));
    EXPECT_EQ(CountOf(text, std::regex("template <OneOf<")), CountOf(text, description) + empty)
        << file << ": a description is written in another way";
  }
  EXPECT_GT(values, 15);
}

}  // namespace
}  // namespace berth::test::described_members_test
