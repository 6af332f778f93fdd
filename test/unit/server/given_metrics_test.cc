// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/pages/metrics_parts.h"
#include "test/support/builders.h"
#include "test/support/metrics_lines.h"
#include "test/support/wirings.h"

namespace berth::test::given_metrics_test {
namespace {

// Planned on these GPUs, and given others.
std::shared_ptr<const PodRecord> Given(const APod& pod, const std::vector<int>& planned,
                                       const std::vector<int>& given,
                                       Evidence by = Evidence::kKubelet) {
  PodRecord record = *pod.BoundOn("n", given);
  record.planned = std::make_shared<const PodDevices>(DevicesOf(pod.On("n", planned)));
  record.given = std::make_shared<const GivenDevices>(GivenDevices{.by = by});
  return std::make_shared<const PodRecord>(std::move(record));
}

TEST(GivenMetrics, CountPodsOnOtherGpusThanChosen) {
  const auto spec =
      std::make_shared<const NodeSpec>(ANode("n").Gpus(8).Linked(LinksOf(BridgedCards())).Spec());
  const Snapshot snapshot({std::make_shared<const Node>(
      spec, PodRecords{Given(APod("a").Whole(2), {0, 1}, {1, 2}),
                       Given(APod("b").Whole(1), {3}, {3}, Evidence::kAgent),
                       Given(APod("c").Whole(1), {}, {0}), APod("d").Whole(1).BoundOn("n")})});
  const std::string text = Written(AddGivenMetrics, snapshot, MetricsConfig{.by_gpu = true});
  ExpectLines(text, {"berth_pods_with_given_gpus{by=\"kubelet\"} 2",
                     "berth_pods_with_given_gpus{by=\"agent\"} 1", "berth_pods_on_other_gpus 1",
                     "berth_node_pods_on_other_gpus{node=\"n\"} 1"});
  EXPECT_NE(text.find("berth_given_link_quality_ratio{size=\"2\"} 0."), std::string::npos) << text;
  EXPECT_EQ(Written(AddGivenMetrics, snapshot, MetricsConfig()).find("berth_node_pods"),
            std::string::npos);
}

}  // namespace
}  // namespace berth::test::given_metrics_test
