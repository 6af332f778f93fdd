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
  const std::regex description(R"(IsValue<(\w+)>[^{]*\{\s*auto& \[([^\]]*)\] = value;([^}]*)\})");
  const std::regex name(R"(\w+)");
  int values = 0;
  for (const char* file : {"cluster/values/describe.h", "cluster/node/describe_node.h"}) {
    const std::string text = ReadText(SourceDir() + "/" + file);
    for (std::sregex_iterator found(text.begin(), text.end(), description), end; found != end;
         ++found, ++values) {
      const std::string value = (*found)[1], members = (*found)[2], list = (*found)[3];
      for (std::sregex_iterator at(members.begin(), members.end(), name); at != end; ++at) {
        const std::regex listed("(OfKind|OfRole<[\\w:]+>)\\(\\s*" + at->str() + "\\b");
        EXPECT_EQ(CountOf(list, listed), 1) << value << "::" << at->str();
      }
    }
    const int empty = CountOf(text, std::regex(R"(MembersOf\(V&\))"));
    EXPECT_EQ(CountOf(text, std::regex("template <IsValue<")), CountOf(text, description) + empty)
        << file << ": a description is written in another way";
  }
  EXPECT_GT(values, 25);
}

}  // namespace
}  // namespace berth::test::described_members_test
