// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/metrics.h"

#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test::metrics_test {
namespace {

std::string Text(TestService& service) {
  return service.metrics().Text(*service.state().Current());
}

// The value of the series, as it is written; "" if there is none.
std::string ValueOf(const std::string& text, const std::string& series) {
  const std::size_t at = ("\n" + text).find("\n" + series + " ");
  if (at == std::string::npos) return "";
  const std::size_t start = at + series.size() + 1;
  return text.substr(start, text.find('\n', start) - start);
}

std::string CallsOf(TestService& service, const std::string& verb, const std::string& result) {
  const std::string text = Text(service);
  std::string value =
      ValueOf(text, "berth_calls_total{result=\"" + result + "\",verb=\"" + verb + "\"}");
  if (value.empty()) {
    value = ValueOf(text, "berth_calls_total{verb=\"" + verb + "\",result=\"" + result + "\"}");
  }
  return value;
}

TEST(Metrics, EverySeriesIsThereFromTheStartWithHelpAndType) {
  TestService service({MachineWith("n1", 2)});
  service.metrics().ShowConfig("0123456789ab", false);
  const std::string text = Text(service);
  for (const char* name :
       {"berth_build_info", "berth_calls_total", "berth_refusals_total", "berth_gpus",
        "berth_gpus_idle", "berth_nodes", "berth_call_duration_seconds", "berth_config_info",
        "berth_config_reload_failed", "berth_config_needs_restart", "berth_config_reloads_total",
        "berth_config_decisions_changed_ratio", "berth_link_quality_ratio"}) {
    EXPECT_NE(text.find("# HELP " + std::string(name) + " "), std::string::npos) << name;
    EXPECT_NE(text.find("# TYPE " + std::string(name) + " "), std::string::npos) << name;
  }
  for (const char* verb : {"filter", "prioritize", "preempt", "bind"}) {
    for (const char* result : {"ok", "refused", "bad_request", "unavailable"}) {
      EXPECT_EQ(CallsOf(service, verb, result), "0") << verb << " " << result;
    }
    EXPECT_EQ(
        ValueOf(text, "berth_call_duration_seconds_count{verb=\"" + std::string(verb) + "\"}"),
        "0");
  }
  EXPECT_EQ(ValueOf(text, "berth_refusals_total{reason=\"gpus_busy\"}"), "0");
  EXPECT_EQ(ValueOf(text, "berth_refusals_total{reason=\"fits\"}"), "");
}

TEST(Metrics, OnlyKnownLabelsAreUsedAndNamesHaveThePrefix) {
  TestService service({MachineWith("n1", 2), MachineWith("n2", 1, "we\"ird\\model\n")});
  service.metrics().ShowConfig("0123456789ab", false);
  std::istringstream lines(Text(service));
  const std::set<std::string> known = {"verb", "result", "reason", "model",  "state",
                                       "le",   "hash",   "size",   "vendor", "version"};
  std::size_t labels = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    EXPECT_TRUE(line.starts_with("berth_")) << line;
    for (std::size_t at = line.find("=\""); at != std::string::npos;
         at = line.find("=\"", at + 1)) {
      const std::size_t start = line.find_last_of("{,", at) + 1;
      EXPECT_TRUE(known.contains(line.substr(start, at - start))) << line;
      ++labels;
    }
  }
  EXPECT_GT(labels, 20u);
}

TEST(Metrics, CallsAreCountedByVerbAndHowTheyEnded) {
  TestService service({MachineWith("n1", 2)});
  ASSERT_EQ(service.Place(PodWithGpus("1", 1), "n1"), "");
  service.Ask("filter", ArgsWithNames(PodWithGpus("2", 2), {"n1"}));
  service.Ask("prioritize", ArgsWithNames(PodWithGpus("2", 1), {"n1"}));
  service.Ask("bind", BindingArgs("stranger", "n1"));
  EXPECT_EQ(service.StatusOf("preempt", "{"), 400);
  EXPECT_EQ(CallsOf(service, "filter", "ok"), "1");
  EXPECT_EQ(CallsOf(service, "filter", "refused"), "1");
  EXPECT_EQ(CallsOf(service, "prioritize", "ok"), "1");
  EXPECT_EQ(CallsOf(service, "bind", "ok"), "1");
  EXPECT_EQ(CallsOf(service, "bind", "refused"), "1");
  EXPECT_EQ(CallsOf(service, "preempt", "bad_request"), "1");
  EXPECT_EQ(ValueOf(Text(service), "berth_call_duration_seconds_count{verb=\"filter\"}"), "2");
}

TEST(Metrics, AFilterThatPassesOnlyNodesNotKnownIsOk) {
  TestService service({});
  service.Ask("filter", ArgsWithNames(PodAsking("1", {{"cpu", "1"}}), {"somewhere-else"}));
  EXPECT_EQ(CallsOf(service, "filter", "ok"), "1");
  EXPECT_EQ(CallsOf(service, "filter", "refused"), "0");
}

TEST(Metrics, CallsWhileNotReadyAreCountedAsUnavailable) {
  TestService service({});
  service.readiness().Set("not yet");
  EXPECT_EQ(service.StatusOf("filter", "{}"), 503);
  EXPECT_EQ(service.StatusOf("bind", "{}"), 503);
  EXPECT_EQ(CallsOf(service, "filter", "unavailable"), "1");
  EXPECT_EQ(CallsOf(service, "bind", "unavailable"), "1");
}

TEST(Metrics, RefusalsAreCountedByTheirReason) {
  TestService service({});
  service.metrics().CountRefusal(Reason::kGpusBusy);
  service.metrics().CountRefusal(Reason::kGpusBusy);
  service.metrics().CountRefusal(Reason::kFits);
  EXPECT_EQ(ValueOf(Text(service), "berth_refusals_total{reason=\"gpus_busy\"}"), "2");
}

TEST(Metrics, LinkQualityIsCountedBySizeClass) {
  TestService service({});
  service.metrics().ObserveLinkQuality(2, 0.97);
  service.metrics().ObserveLinkQuality(3, 1);
  service.metrics().ObserveLinkQuality(16, 1);
  const std::string text = Text(service);
  EXPECT_EQ(ValueOf(text, "berth_link_quality_ratio_bucket{size=\"2\",le=\"0.95\"}"), "0");
  EXPECT_EQ(ValueOf(text, "berth_link_quality_ratio_bucket{size=\"2\",le=\"0.99\"}"), "1");
  EXPECT_EQ(ValueOf(text, "berth_link_quality_ratio_count{size=\"3-4\"}"), "1");
  EXPECT_EQ(ValueOf(text, "berth_link_quality_ratio_count{size=\"5-8\"}"), "0");
  EXPECT_EQ(ValueOf(text, "berth_link_quality_ratio_sum{size=\"9+\"}"), "1");
}

TEST(Metrics, WaitsAreCountedByWhatThePodHasBeenGiven) {
  TestService service({});
  const auto wait = [&](const Placement& placement, int seconds) {
    service.metrics().ObserveWait(placement, std::chrono::seconds(seconds));
  };
  wait(APod("a").Share(300).On("n", {0}), 2);
  wait(APod("b").Whole(1).On("n", {0}), 20);
  wait(APod("c").Whole(8).On("n", {0, 1, 2, 3, 4, 5, 6, 7}), 2000);
  wait({.node = "n", .grants = {}, .places = 2}, -3);  // clocks differ
  wait(APod("d").On("n"), 1);
  const std::string text = Text(service);
  const auto count = [&](const std::string& labels) {
    return ValueOf(text, "berth_pod_wait_seconds_" + labels);
  };
  EXPECT_EQ(count("bucket{size=\"share\",le=\"5\"}"), "1");
  EXPECT_EQ(count("sum{size=\"1\"}"), "20");
  EXPECT_EQ(count("bucket{size=\"5-8\",le=\"1800\"}"), "0");
  EXPECT_EQ(count("bucket{size=\"5-8\",le=\"3600\"}"), "1");
  EXPECT_EQ(count("sum{size=\"2\"}"), "0");
  EXPECT_EQ(count("count{size=\"3-4\"}"), "0");
}

TEST(Metrics, OneConfigurationIsShownAndHowItsReloadsEnded) {
  TestService service({});
  Metrics& metrics = service.metrics();
  metrics.ShowConfig("aaaaaaaaaaaa", false);
  metrics.ShowConfig("bbbbbbbbbbbb", true);
  metrics.CountReload(ReloadResult::kApplied, false);
  metrics.CountReload(ReloadResult::kUnchanged, false);
  metrics.CountReload(ReloadResult::kApplied, false);
  metrics.CountReload(ReloadResult::kRefused, true);
  metrics.ShowDecisionsChanged(0.5);
  const std::string text = Text(service);
  EXPECT_EQ(ValueOf(text, "berth_config_info{hash=\"bbbbbbbbbbbb\"}"), "1");
  EXPECT_EQ(text.find("aaaaaaaaaaaa"), std::string::npos);
  EXPECT_EQ(ValueOf(text, "berth_config_needs_restart"), "1");
  EXPECT_EQ(ValueOf(text, "berth_config_reload_failed"), "1");
  EXPECT_EQ(ValueOf(text, "berth_config_reloads_total{result=\"applied\"}"), "2");
  EXPECT_EQ(ValueOf(text, "berth_config_reloads_total{result=\"refused\"}"), "1");
  EXPECT_EQ(ValueOf(text, "berth_config_reloads_total{result=\"unchanged\"}"), "1");
  EXPECT_EQ(ValueOf(text, "berth_config_decisions_changed_ratio"), "0.5");
}

TEST(Metrics, GaugesShowTheSnapshot) {
  NodeSpec broken = MachineWith("n2", 4, "T4");
  broken.gpus[0].healthy = false;
  TestService service({MachineWith("n1", 2), broken, MachineWith("cpu-only", 0, "")});
  ASSERT_EQ(service.Place(PodAsking("share", {{"berth.dev/gpu-milli", "250"}}), "n1"), "");
  ASSERT_EQ(service.Place(PodWithGpus("whole", 2), "n2"), "");
  const std::string text = Text(service);
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

TEST(Metrics, GpusAndPlacesAreShownByVendor) {
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
  const std::string text = Text(service);
  const auto value = [&text](const char* what, const std::string& vendor, const char* state) {
    return ValueOf(text, std::string(what) + "{state=\"" + state + "\",vendor=\"" + vendor + "\"}");
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
  EXPECT_EQ(Text(service).find("vendor.com"), std::string::npos);
}

TEST(Metrics, GpusThatClaimsHoldCountAsAllocated) {
  TestService service({MachineWith("n1", 4)});
  ASSERT_TRUE(service.state().Apply(std::vector<ClusterEvent>{
      GpusClaimed{"n1", {{"ns/c", "gpu-1", "", 1, "", -1}, {"ns/d", "gpu-1", "", 1, "", -1}}}}));
  const std::string text = Text(service);
  EXPECT_EQ(ValueOf(text, "berth_gpus_claimed{model=\"A100\"}"), "1");
  EXPECT_EQ(ValueOf(text, "berth_gpus{model=\"A100\",state=\"allocated\"}"), "1");
  EXPECT_EQ(ValueOf(text, "berth_gpus_idle{model=\"A100\"}"), "3");
}

// A H200 draws 75 W idle and 700 W in use (topology/gpu_power.cc).
TEST(Metrics, ThePowerOfTheNodesOfEachModelIsEstimated) {
  TestService service({MachineWith("n1", 2, "NVIDIA-H200"), MachineWith("n2", 1, "NVIDIA-H200"),
                       MachineWith("n3", 2, "GTX-9")});
  const auto watts = [&service](const std::string& model) {
    return ValueOf(Text(service), "berth_gpu_power_estimate_watts{model=\"" + model + "\"}");
  };
  EXPECT_EQ(watts("NVIDIA-H200"), "225");
  ASSERT_EQ(service.Place(PodAsking("share", {{"berth.dev/gpu-milli", "250"}}), "n1"), "");
  EXPECT_EQ(watts("NVIDIA-H200"), "850");
  EXPECT_EQ(watts("GTX-9"), "") << "nobody knows";
}

TEST(Metrics, AModelThatIsGoneIsShownNoLonger) {
  TestService service({MachineWith("n1", 2), MachineWith("n2", 4, "T4")});
  EXPECT_NE(Text(service).find("model=\"T4\""), std::string::npos);
  ASSERT_TRUE(service.state().Apply(std::vector<ClusterEvent>{NodeRemoved{"n2"}}));
  EXPECT_EQ(Text(service).find("model=\"T4\""), std::string::npos);
}

}  // namespace
}  // namespace berth::test::metrics_test
