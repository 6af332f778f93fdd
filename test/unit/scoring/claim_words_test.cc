// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/claim_words.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "test/support/builders.h"

namespace berth::test::claim_words_test {
namespace {

DeviceRequest Asks(std::int64_t count, CapacityUses capacity = {}) {
  DeviceWant want{.name = {},
                  .device_class = "gpu",
                  .selectors = {},
                  .count = count,
                  .tolerations = {},
                  .tolerations_json = {},
                  .capacity = std::move(capacity)};
  return {"r", {std::move(want)}};
}

constexpr std::int64_t kGi = std::int64_t{1000} << 30;  // in thousandths

std::string TextOf(const ClaimsJudged& judged) { return LineOf(LineOf(judged), kLongestLine); }

TEST(ClaimWords, SayHowMuchOfAGpuIsAskedFor) {
  const auto text = [](const DeviceRequest& request) {
    const DeviceClaim claim{{request}};
    return AskText(std::span(&claim, 1));
  };
  EXPECT_EQ(text(Asks(2)), "2 GPUs");
  EXPECT_EQ(text(Asks(1, {{"memory", 20 * kGi}})), "20Gi of a GPU's memory");
  EXPECT_EQ(text(Asks(1, {{"d.io/compute", 30'000}, {"d.io/memory", kGi / 2}})),
            "30 of a GPU's compute and 512Mi of its memory");
  EXPECT_EQ(text(Asks(2, {{"memory", 1500}})), "2 times 1500m of a GPU's memory");
  const DeviceClaim both{{Asks(1), Asks(1, {{"memory", kGi}})}};
  EXPECT_EQ(AskText(std::span(&both, 1)), "1 GPU and 1Gi of a GPU's memory");
}

TEST(ClaimWords, TheCureComesFirst) {
  ClaimsJudged judged{.asks = "20Gi of a GPU's memory", .nodes = 3};
  judged.nearest = "n1";
  judged.lack = {"gpu-0", "memory", 12 * kGi, true};
  EXPECT_EQ(TextOf(judged),
            "fits none of 3 nodes; ask for 12Gi of memory or less, or wait until claims end; it "
            "asks for 20Gi of a GPU's memory by claim, and most is left of gpu-0 on n1");
  judged.lack->would_do = false;
  EXPECT_EQ(TextOf(judged),
            "fits none of 3 nodes; wait until claims end; it asks for 20Gi of a GPU's memory by "
            "claim, and most is left of gpu-0 on n1: 12Gi of memory");
  judged.against = {{"had no GPUs", 1}, {"had too little of rdma/hca", 2}};
  EXPECT_EQ(TextOf(judged),
            "fits none of 3 nodes; 2 nodes with such GPUs free had too little of rdma/hca; it asks "
            "for 20Gi of a GPU's memory by claim");
  judged.fitting = 2;
  EXPECT_EQ(TextOf(judged), "fits 2 of 3 nodes now; it asks for 20Gi of a GPU's memory by claim");
  EXPECT_EQ(TextOf({.asks = "2 GPUs", .nodes = 1}),
            "fits none of 1 node; it asks for 2 GPUs by claim, and no node has that free");
}

TEST(ClaimWords, SayWhatAPodHasByItsClaims) {
  auto claims = std::make_shared<std::vector<ClaimedGpu>>();
  claims->push_back({"default/c", "gpu-0", "", 0, "", -1});
  claims->back().shared = true;
  claims->back().parts = {{"memory", 20 * kGi}};
  claims->push_back({"default/c", "gpu-1", "", 1, "", -1});
  claims->push_back({"other/c", "gpu-2", "", 2, "", -1});
  const Node node(std::make_shared<const NodeSpec>(ANode("n").Gpus(4).Spec()), {}, claims);
  EXPECT_EQ(ClaimedText(node, APod("p").Claims({"c"}).Request()), "gpu-0 (20Gi of memory), gpu-1");
  EXPECT_EQ(ClaimedText(node, APod("p").Request()), "");
  EXPECT_EQ(PartsHeldOn(node), std::vector<std::string>()) << "its GPUs have lines of their own";
  const Node without(std::make_shared<const NodeSpec>(ANode("n").Spec()), {}, claims);
  EXPECT_EQ(PartsHeldOn(without),
            std::vector<std::string>{"gpu-0: parts held by claim default/c (20Gi of memory)"});
}

}  // namespace
}  // namespace berth::test::claim_words_test
