// SPDX-License-Identifier: Apache-2.0
#include "server/pages/metrics_parts.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/metrics_lines.h"
#include "test/support/wire_fixture.h"

namespace berth::test::cluster_metrics_test {
namespace {

std::string ClusterText(TestService& service) {
  return Written(AddClusterMetrics, *service.state().Current());
}

TEST(ClusterMetrics, GaugesShowTheSnapshot) {
  NodeSpec broken = MachineWith("n2", 4, "T4");
  broken.gpus[0].healthy = false;
  TestService service({MachineWith("n1", 2), broken, MachineWith("cpu-only", 0, "")});
  ASSERT_EQ(service.Place(PodAsking("share", {{"berth.dev/gpu-milli", "250"}}), "n1"), "");
  ASSERT_EQ(service.Place(PodWithGpus("whole", 2), "n2"), "");
  const std::string text = ClusterText(service);
  EXPECT_EQ(ValueOf(text, "berth_nodes"), "3");
  const auto gpus = [&text](const std::string& model, const std::string& state) {
    return ValueOf(text, "berth_gpus{model=\"" + model + "\",state=\"" + state + "\"}");
  };
  EXPECT_EQ(gpus("A100", "allocated"), "0.25");
  EXPECT_EQ(gpus("A100", "free"), "1.75");
  EXPECT_EQ(gpus("A100", "unhealthy"), "0");
  EXPECT_EQ(gpus("T4", "allocated"), "2");
  EXPECT_EQ(gpus("T4", "free"), "1");
  EXPECT_EQ(gpus("T4", "unhealthy"), "1");
  EXPECT_EQ(gpus("", "free"), "");  // nodes without GPUs are no model
  EXPECT_EQ(ValueOf(text, "berth_gpus_idle{model=\"A100\"}"), "1");
  EXPECT_EQ(ValueOf(text, "berth_gpus_idle{model=\"T4\"}"), "1");
}

TEST(ClusterMetrics, GpusAndPlacesAreShownByVendor) {
  NodeSpec amd = MachineWith("n2", 8, ""), gaudi = MachineWith("n3", 4, "");
  amd.gpu_resource = "amd.com/gpu";
  gaudi.gpu_resource = "habana.ai/gaudi";
  gaudi.missing = 1;
  NodeSpec intel = MachineWith("n4", 0, "Flex_170"), other = MachineWith("n5", 1, "X");
  intel.gpu_resource = "gpu.intel.com/i915";
  intel.places = {.count = 10, .gpus = 1};
  other.gpu_resource = "vendor.com/thing";
  TestService service({MachineWith("n1", 2), amd, gaudi, intel, other});
  ASSERT_EQ(service.Place(PodAsking("train", {{"amd.com/gpu", "2"}}), "n2"), "");
  ASSERT_EQ(service.Place(PodAsking("infer", {{"gpu.intel.com/i915", "1"}}), "n4"), "");
  const std::string text = ClusterText(service);
  const auto value = [&text](const char* what, const std::string& vendor, const char* state) {
    return ValueOf(text, std::string(what) + "{vendor=\"" + vendor + "\",state=\"" + state + "\"}");
  };
  EXPECT_EQ(value("berth_vendor_gpus", "amd", "allocated"), "2");
  EXPECT_EQ(value("berth_vendor_gpus", "amd", "free"), "6");
  EXPECT_EQ(value("berth_vendor_gpus", "habana", "unhealthy"), "1");
  EXPECT_EQ(value("berth_vendor_gpus", "habana", "free"), "3");
  EXPECT_EQ(value("berth_vendor_gpus", "vendor.com", "free"), "1");
  EXPECT_EQ(value("berth_vendor_gpus", "", "free"), "2") << "of a file that does not say";
  EXPECT_EQ(value("berth_vendor_gpu_places", "intel", "taken"), "1");
  EXPECT_EQ(value("berth_vendor_gpu_places", "intel", "free"), "9");
  EXPECT_EQ(value("berth_vendor_gpu_places", "amd", "free"), "0");
  ASSERT_TRUE(service.state().Apply(std::vector<ClusterEvent>{NodeRemoved{"n5"}}));
  EXPECT_EQ(ClusterText(service).find("vendor.com"), std::string::npos);
}

TEST(ClusterMetrics, GpusThatClaimsHoldCountAsAllocated) {
  TestService service({MachineWith("n1", 4)});
  ASSERT_TRUE(service.state().Apply(std::vector<ClusterEvent>{
      GpusClaimed{"n1", {{"ns/c", "gpu-1", "", 1, "", -1}, {"ns/d", "gpu-1", "", 1, "", -1}}}}));
  const std::string text = ClusterText(service);
  EXPECT_EQ(ValueOf(text, "berth_gpus_claimed{model=\"A100\"}"), "1");
  EXPECT_EQ(ValueOf(text, "berth_gpus{model=\"A100\",state=\"allocated\"}"), "1");
  EXPECT_EQ(ValueOf(text, "berth_gpus_idle{model=\"A100\"}"), "3");
}

TEST(ClusterMetrics, AModelThatIsGoneIsShownNoLonger) {
  TestService service({MachineWith("n1", 2), MachineWith("n2", 4, "T4")});
  EXPECT_NE(ClusterText(service).find("model=\"T4\""), std::string::npos);
  ASSERT_TRUE(service.state().Apply(std::vector<ClusterEvent>{NodeRemoved{"n2"}}));
  EXPECT_EQ(ClusterText(service).find("model=\"T4\""), std::string::npos);
}

TEST(WasteMetrics, TellsGpusByModelAndCause) {
  Waste waste{1500, {}};
  waste.fragment_milli[static_cast<std::size_t>(FragmentCause::kCpu)] = 250;
  const std::string text =
      Written(AddWasteMetrics, std::map<std::string, Waste>{{"A100", waste}, {"odd \"name\"", {}}});
  ExpectLines(text, {"# TYPE berth_expected_waste_gpus gauge",
                     "berth_expected_waste_gpus{model=\"A100\"} 1.5",
                     "berth_expected_waste_gpus{model=\"odd \\\"name\\\"\"} 0",
                     "berth_fragmentation_gpus{model=\"A100\",cause=\"cpu\"} 0.25",
                     "berth_fragmentation_gpus{model=\"A100\",cause=\"memory\"} 0"});
}

TEST(TopologyMetrics, TellsDomainsAndNodesByLevel) {
  const std::vector<std::string_view> values = {"z", "a", "z", "b", "z", "", "", ""};
  const std::string text =
      Written(AddTopologyMetrics, TopologyLevels{{"zone", {"x"}}, {"rack", {"y"}}},
              DomainTree(4, 2, values));
  ExpectLines(
      text, {"berth_topology_domains{level=\"zone\"} 1", "berth_topology_domains{level=\"rack\"} 2",
             "berth_topology_nodes{level=\"zone\"} 3", "berth_topology_nodes{level=\"rack\"} 2"});
}

}  // namespace
}  // namespace berth::test::cluster_metrics_test
