// SPDX-License-Identifier: Apache-2.0
#include "server/why/plan_json.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/wire/json/strict_json.h"
#include "server/wire/node/template_node.h"
#include "test/support/builders.h"

namespace berth::wire::growth_json_test {
namespace {

using test::APod;

class GrowthJsonTest : public testing::Test {
 protected:
  GrowthJsonTest() {
    pods_ = {APod("p").Whole(8).Request(), APod("q").Whole(8).Request(),
             APod("r").Share(500).Request()};
    told_.asked = {3, 16'500};
    told_.pools.push_back({{.name = "big",
                            .label = "cloud.google.com/gke-nodepool",
                            .instance_type = "a3-highgpu-8g",
                            .model = "H100",
                            .like = "n1",
                            .nodes = 12,
                            .gpus = 8},
                           {{1, 500}, {2, 8500}, {2, 8500}}});
    told_.pools.push_back({{.name = "mig",
                            .label = "agentpool",
                            .like = "m1",
                            .nodes = 1,
                            .gpus = 1,
                            .not_autoscaled = "by hand"},
                           {{}, {}, {}}});
  }
  [[nodiscard]] GrowthReport Report() const {
    GrowthReport report{.request = request_, .pods = pods_};
    report.told = told_;
    return report;
  }

  PlanRequest request_;
  std::vector<PodRequest> pods_;
  Growth told_;
};

TEST_F(GrowthJsonTest, PeopleReadALinePerPool) {
  told_.now = {1, 500};
  told_.nowhere = {1};
  EXPECT_EQ(TextOf(Report()),
            "3 pods wait, for 16.5 GPUs; 1 fits on the present nodes\n"
            "pool big, a3-highgpu-8g (12 nodes of 8 GPUs, H100): 1 more node takes 1 pod (0.5 "
            "GPUs), 2 to 3 take 2 pods (8.5 GPUs)\n"
            "pool mig (1 node of 1 GPU): 3 more nodes take none of them\n"
            "  by hand\n"
            "No pool takes 1 pod, even if no other waited: default/q\n");
}

TEST_F(GrowthJsonTest, ProgramsReadFields) {
  told_.nowhere = {1};
  GrowthReport report = Report();
  report.gated = 2;
  const Json json = Json::parse(EncodeGrowth(report));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["asked"], 3);
  EXPECT_EQ(json["asked_gpus"], 16.5);
  EXPECT_EQ(json["gated"], 2);
  const Json& pool = json["pools"][0];
  EXPECT_EQ(pool["pool"], "big");
  EXPECT_EQ(pool["like"], "n1");
  EXPECT_EQ(pool["takes"].size(), 3u);
  EXPECT_EQ(pool["takes"][1], (Json{{"nodes", 2}, {"pods", 2}, {"gpus", 8.5}}));
  EXPECT_FALSE(pool.contains("not_autoscaled"));
  EXPECT_EQ(json["pools"][1]["not_autoscaled"], "by hand");
  EXPECT_EQ(json["nowhere"], Json::array({"default/q"}));
}

TEST_F(GrowthJsonTest, APoolWithoutNodesSaysWhatIsAssumedOfIt) {
  const NodePool pool =
      PoolAtZero(test::ANode("node")
                     .Gpus(8)
                     .Model("H100")
                     .Labelled({{"node.kubernetes.io/instance-type", "a3-highgpu-8g"}})
                     .Spec());
  told_.pools = {{pool, {{1, 8000}, {2, 16'000}}}};
  request_.at_zero.resize(1);
  EXPECT_EQ(
      TextOf(Report()),
      "3 pods wait, for 16.5 GPUs\n"
      "machine type a3-highgpu-8g (no node yet, 8 GPUs, H100): 1 node takes 1 pod (8 GPUs), 2 "
      "take 2 pods (16 GPUs)\n"
      "  assumed of a machine type: " +
          std::string(kTemplateAssumes) + "\n");
  const Json json = Json::parse(EncodeGrowth(Report()))["pools"][0];
  EXPECT_EQ(json["pool"], "a3-highgpu-8g");
  EXPECT_EQ(json["instance_type"], "a3-highgpu-8g");
  EXPECT_EQ(json["nodes"], 0);
  EXPECT_EQ(json["like"], "");
  EXPECT_EQ(json["assumes"], kTemplateAssumes);
}

TEST_F(GrowthJsonTest, PodsOfTheRequestAreAskedAboutAndDoNotWait) {
  request_.has_pods = true;
  EXPECT_TRUE(TextOf(Report()).starts_with("3 pods asked about, for 16.5 GPUs\n"));
}

TEST_F(GrowthJsonTest, WhereNothingWaitsNoPoolIsNamed) {
  told_.asked = {};
  GrowthReport report = Report();
  report.gated = 1;
  EXPECT_EQ(TextOf(report), "no pod waits; 1 more pod with scheduling gates\n");
}

TEST_F(GrowthJsonTest, WithoutGpusThereIsNothingToGrow) {
  told_.pools.clear();
  told_.nowhere = {0, 1, 2};
  EXPECT_EQ(TextOf(Report()),
            "3 pods wait, for 16.5 GPUs\nno node has GPUs, so no pool can grow\n");
}

}  // namespace
}  // namespace berth::wire::growth_json_test
