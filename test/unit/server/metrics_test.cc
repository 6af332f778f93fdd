// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/metrics.h"

#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "test/support/builders.h"
#include "test/support/metrics_lines.h"
#include "test/support/wire_fixture.h"

namespace berth::test::metrics_test {
namespace {

std::string Text(TestService& service) {
  MetricsText text;
  service.metrics().AddTo(text);
  return text.Take();
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
       {"berth_build_info", "berth_calls_total", "berth_refusals_total",
        "berth_call_duration_seconds", "berth_config_info", "berth_config_reload_failed",
        "berth_config_needs_restart", "berth_config_reloads_total",
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

}  // namespace
}  // namespace berth::test::metrics_test
