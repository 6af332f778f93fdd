// SPDX-License-Identifier: Apache-2.0
//
// What a gang lacks before it can start, by its minimum and by those of its roles.
#include "cluster/values/gang.h"

#include <gtest/gtest.h>

#include <vector>

namespace berth::gang_test {
namespace {

using Roles = std::vector<GangRole>;

TEST(Gang, LacksWhatItsRolesLack) {
  Gang gang;
  gang.minimum = 4;
  gang.has_roles = true;
  gang.roles = {{"master", 1}, {"worker", 3}};
  EXPECT_EQ(MissingRoles(gang, {}), gang.roles);
  EXPECT_EQ(MissingRoles(gang, {{"worker", 2}}), (Roles{{"master", 1}, {"worker", 1}}));
  EXPECT_EQ(MissingRoles(gang, {{"worker", 5}}), (Roles{{"master", 1}}));
  EXPECT_EQ(MissingRoles(gang, {{"worker", 3}, {"", 1}}), Roles{}) << "it may be the master";
}

TEST(Gang, NeedsAllWhereRolesAreNotKnown) {
  Gang gang;
  EXPECT_FALSE(NeedsAll(gang, {{"", 4}})) << "it has none";
  gang.has_roles = true;
  EXPECT_TRUE(NeedsAll(gang, {{"worker", 4}})) << "their numbers are not known";
  gang.roles = {{"worker", 3}};
  EXPECT_FALSE(NeedsAll(gang, {{"worker", 4}}));
  EXPECT_TRUE(NeedsAll(gang, {{"worker", 4}, {"", 1}})) << "a pod does not say its role";
}

TEST(Gang, SaysWhatToDoAboutPodsThatAreMadeOneByOne) {
  EXPECT_EQ(CureOf(OneByOne::kNo), "");
  for (const OneByOne why :
       {OneByOne::kStatefulSet, OneByOne::kInOrder, OneByOne::kExclusiveTopology}) {
    EXPECT_NE(CureOf(why), "");
  }
}

}  // namespace
}  // namespace berth::gang_test
