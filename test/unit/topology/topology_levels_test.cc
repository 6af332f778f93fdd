// SPDX-License-Identifier: Apache-2.0
#include "topology/domains/domain_tree.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace berth::topology_levels_test {
namespace {

std::string Problem(const TopologyLevels& levels) {
  const Status status = Validate(levels);
  return status ? "" : status.error().message;
}

TEST(TopologyLevels, EveryPresetAndTheDefaultAreValid) {
  for (const TopologyPreset& preset : TopologyPresets()) {
    EXPECT_EQ(Problem(preset.levels), "") << preset.name;
    EXPECT_EQ(FindTopologyPreset(preset.name), &preset);
  }
  EXPECT_EQ(Problem(DefaultTopologyLevels()), "");
  EXPECT_EQ(FindTopologyPreset("azure"), nullptr);
}

TEST(TopologyLevels, TheDefaultKnowsTheLabelsOfThePresetsInTheirOrder) {
  // Beside the two that name a single machine or a reservation.
  const std::set<std::string> left_out = {"cloud.google.com/gce-topology-host",
                                          "topology.k8s.aws/capacity-block-id"};
  const TopologyLevels& defaults = DefaultTopologyLevels();
  for (const TopologyPreset& preset : TopologyPresets()) {
    std::size_t wider = 0;
    for (const TopologyLevel& level : preset.levels) {
      for (const std::string& label : level.labels) {
        if (left_out.contains(label)) continue;
        const auto found = FindTopologyLevel(defaults, label);
        ASSERT_TRUE(found.has_value()) << label;
        EXPECT_GE(*found, wider) << label;
        wider = *found;
      }
    }
  }
}

TEST(TopologyLevels, ALevelIsFoundByItsNameAndByEachOfItsLabels) {
  const TopologyLevels levels = {{"zone", {"z"}}, {"rack", {"old/rack", "new/rack"}}};
  EXPECT_EQ(FindTopologyLevel(levels, "zone"), 0U);
  EXPECT_EQ(FindTopologyLevel(levels, "rack"), 1U);
  EXPECT_EQ(FindTopologyLevel(levels, "new/rack"), 1U);
  EXPECT_EQ(FindTopologyLevel(levels, "Rack"), std::nullopt);
  EXPECT_EQ(FindTopologyLevel(levels, ""), std::nullopt);
}

TEST(TopologyLevels, WhatCannotBeToldApartIsRefused) {
  EXPECT_EQ(Problem({{"", {"a"}}}), "[0].name: want a name, got \"\"");
  EXPECT_EQ(Problem({{"a", {}}}), "[0].labels: want a node label key, got none");
  EXPECT_EQ(Problem({{"a", {"x", ""}}}), "[0].labels: want node label keys, got \"\"");
  EXPECT_EQ(Problem({{"a", {"x"}}, {"a", {"y"}}}), "[1].name: \"a\" is there twice");
  EXPECT_EQ(Problem({{"a", {"x"}}, {"b", {"y", "x"}}}), "[1].labels: \"x\" is there twice");
  EXPECT_EQ(Problem({{"y", {"x"}}, {"b", {"y"}}}), "[0].name: \"y\" is a label of another level");
  EXPECT_EQ(Problem({{"x", {"x"}}}), "");  // as Kueue names its levels
  TopologyLevels many;
  for (int i = 0; i < 17; ++i) many.push_back({std::to_string(i), {"l" + std::to_string(i)}});
  EXPECT_EQ(Problem(many), "want at most 16 levels, got 17");
}

}  // namespace
}  // namespace berth::topology_levels_test
