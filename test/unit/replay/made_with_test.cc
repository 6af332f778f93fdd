// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/made_with.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::replay::made_with_test {
namespace {

std::string CommandOf(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "/some/where/berth-replay");
  return MadeWithCommand(static_cast<int>(arguments.size()), arguments.data()).command;
}

TEST(MadeWith, HasTheCommandAsAShellTakesIt) {
  EXPECT_EQ(CommandOf({"run", "--tasks", "my tasks.csv", "--policy=it's", "--seed", "3", ""}),
            "berth-replay run --tasks 'my tasks.csv' '--policy=it'\\''s' --seed 3 ''");
}

TEST(MadeWith, LeavesOutWhatChangesNoFigure) {
  EXPECT_EQ(CommandOf({"compare", "--report", "here", "--threads=4", "--shard", "1/2", "--seeds",
                       "2", "--json", "-"}),
            "berth-replay compare --seeds 2");
  EXPECT_EQ(CommandOf({"run", "--json"}), "berth-replay run") << "without its value";
}

TEST(MadeWith, NamesAVersion) {
  EXPECT_NE(MadeWithCommand(0, nullptr).version.find('.'), std::string::npos);
}

}  // namespace
}  // namespace berth::replay::made_with_test
