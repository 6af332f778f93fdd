// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/claims/claim_placer.h"

#include <gtest/gtest.h>

namespace berth::replay::claim_placer_test {
namespace {

// What becomes of pods of so many GPUs, in this order, on one machine of 8: '+' and '-'.
std::string Placed(ClaimWay way, bool one_numa, const std::vector<int>& pods) {
  const NodeSpec node = ToNodeSpec({"n", 96'000, 400'000, 8, "V100M32"}, "n");
  auto placer =
      ClaimPlacer::Create(*PolicyNamed("expected-waste"), {node}, {way, one_numa, 1}).value();
  std::string text;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const TraceTask task{"t", 1000, 1000, pods[i], 1000, ""};
    text += placer->Place(PodOf(task, i)).value() ? '+' : '-';
  }
  return text;
}

TEST(ClaimPlacer, PlacesAsLongAsThereAreGpus) {
  for (const ClaimWay way : {ClaimWay::kFirstFit, ClaimWay::kNodes, ClaimWay::kDevices}) {
    EXPECT_EQ(Placed(way, false, {1, 4, 2, 2, 1}), "+++-+");
  }
}

// The single GPU comes from the half that has one left, so that two stay together.
TEST(ClaimPlacer, WhoChoosesDevicesKeepsNumaNodesWhole) {
  EXPECT_EQ(Placed(ClaimWay::kFirstFit, true, {2, 3, 1, 2, 1}), "+++-+");
  EXPECT_EQ(Placed(ClaimWay::kNodes, true, {2, 3, 1, 2, 1}), "+++-+");
  EXPECT_EQ(Placed(ClaimWay::kDevices, true, {2, 3, 1, 2, 1}), "++++-");
}

}  // namespace
}  // namespace berth::replay::claim_placer_test
