// SPDX-License-Identifier: Apache-2.0
//
// A changed configuration file becomes the policy in use, or is refused and changes nothing.

#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "config/load.h"
#include "server/settings/config_file.h"
#include "test/support/config_places.h"
#include "test/support/metrics_lines.h"
#include "test/support/wire_fixture.h"

namespace berth::test::config_reload_test {
namespace {

constexpr char kStart[] = "profile: best-fit\n";

// A service that follows the file. What it logs is kept from the first look on.
class Following {
 public:
  explicit Following(const std::string& path)
      : service_({MachineWith("n1", 4), MachineWith("n2", 2)}, nullptr, "best-fit"),
        reload_(*ConfigFile::Open(path, ""), {service_.extender(),
                                              log_,
                                              service_.metrics(),
                                              nullptr,
                                              {},
                                              [this](const Config& config) {
                                                classes.push_back(config.workload_classes.size());
                                              }}) {
    testing::internal::CaptureStderr();
  }
  ~Following() {
    if (!log_taken_) testing::internal::GetCapturedStderr();
  }
  Following(const Following&) = delete;
  Following& operator=(const Following&) = delete;

  // As many looks as it takes to see and read a change, and some more.
  void Look() {
    for (int i = 0; i < 4; ++i) reload_.Look();
  }

  TestService& service() { return service_; }
  Log& log() { return log_; }
  std::shared_ptr<Engine> engine() { return service_.extender().policy()->engine; }
  std::string profile() { return engine()->profile()->name; }
  std::vector<std::size_t> classes;  // how many there were each time that they were taken over

  // The value of the series in /metrics, as it is written.
  std::string Metric(const std::string& series) {
    MetricsText text;
    service_.metrics().AddTo(text);
    return ValueOf(text.Take(), series);
  }
  // applied, refused, unchanged; failed.
  std::string Counts() {
    std::string counts;
    for (const char* result : {"applied", "refused", "unchanged"}) {
      counts += Metric("berth_config_reloads_total{result=\"" + std::string(result) + "\"}") + " ";
    }
    return counts + Metric("berth_config_reload_failed");
  }
  bool Shows(const std::string& text) {
    return Metric("berth_config_info{hash=\"" + Sha256Hex(text).substr(0, 12) + "\"}") == "1";
  }

  // The lines of the log; once.
  std::vector<Json> Lines() {
    log_taken_ = true;
    while (log_.held_bytes() > 0) std::this_thread::yield();  // lines that are not written yet
    std::istringstream text(testing::internal::GetCapturedStderr());
    std::vector<Json> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }

 private:
  Log log_{LogLevel::kInfo};
  TestService service_;
  ConfigReload reload_;
  bool log_taken_ = false;
};

std::vector<std::string> EventsOf(const std::vector<Json>& lines) {
  std::vector<std::string> events;
  for (const Json& line : lines) events.push_back(line["event"]);
  return events;
}

using Events = std::vector<std::string>;

TEST(ConfigReload, NothingHappensWhileTheFileStaysAsItIs) {
  const OrdinaryConfig config(kStart);
  Following berth(config.path());
  const auto engine = berth.engine();
  berth.Look();
  EXPECT_EQ(berth.engine(), engine);
  EXPECT_EQ(berth.Counts(), "0 0 0 0");
  EXPECT_TRUE(berth.Shows(kStart));
  EXPECT_EQ(EventsOf(berth.Lines()), Events());
}

TEST(ConfigReload, ASwappedMountIsAppliedAndShown) {
  MountedConfig config(kStart);
  Following berth(config.path());
  const std::string text = "profile: gpu-packing\n";
  config.Publish(text);
  berth.Look();
  EXPECT_EQ(berth.profile(), "gpu-packing");
  EXPECT_EQ(berth.Counts(), "1 0 0 0");
  EXPECT_TRUE(berth.Shows(text));
  EXPECT_FALSE(berth.Shows(kStart));
  const auto lines = berth.Lines();
  ASSERT_EQ(EventsOf(lines), (Events{"policy_changed", "config_applied"}));
  EXPECT_EQ(lines[0]["from"], "best-fit");
  EXPECT_EQ(lines[0]["to"], "gpu-packing");
  EXPECT_EQ(lines[1]["hash"], Sha256Hex(text).substr(0, 12));
}

TEST(ConfigReload, AnEditInPlaceAndAReplacedFileAreApplied) {
  const OrdinaryConfig config(kStart);
  Following berth(config.path());
  config.Edit("profiles: [{name: mine, scorers: [{name: best-fit}]}]\nprofile: mine\n");
  berth.Look();
  EXPECT_EQ(berth.profile(), "mine");
  config.Replace("profile: random\n");
  berth.Look();
  EXPECT_EQ(berth.profile(), "random");
  EXPECT_EQ(berth.Counts(), "2 0 0 0");
}

TEST(ConfigReload, WorkloadClassesAreTakenOverWithTheirProfiles) {
  const OrdinaryConfig config(kStart);
  Following berth(config.path());
  config.Replace("profile: best-fit\nworkloadClasses: [{name: a, profile: spreading}]\n");
  berth.Look();
  EXPECT_EQ(berth.classes, std::vector<std::size_t>{1});
  RequestShape shape;
  shape.nodes.profile = "spreading";
  EXPECT_EQ(berth.engine()->profile(shape)->name, "spreading");
  EXPECT_EQ(berth.profile(), "best-fit") << "for all others";
  config.Replace("profile: gpu-packing\nworkloadClasses: [{name: a, profile: spreading}]\n");
  berth.Look();
  EXPECT_EQ(berth.classes, std::vector<std::size_t>{1}) << "they are the same";
  config.Replace("profile: gpu-packing\n");
  berth.Look();
  EXPECT_EQ(berth.classes, (std::vector<std::size_t>{1, 0}));
}

TEST(ConfigReload, AFileThatVanishesLeavesTheLastGoodOneInUse) {
  const OrdinaryConfig config(kStart);
  Following berth(config.path());
  const auto engine = berth.engine();
  config.Remove();
  berth.Look();
  EXPECT_EQ(berth.engine(), engine);
  EXPECT_EQ(berth.Counts(), "0 1 0 1");
  EXPECT_TRUE(berth.Shows(kStart));
  config.Replace(kStart);
  berth.Look();
  EXPECT_EQ(berth.engine(), engine);
  EXPECT_EQ(berth.Counts(), "0 1 1 0");
  EXPECT_EQ(EventsOf(berth.Lines()), (Events{"config_refused", "config_unchanged"}));
}

TEST(ConfigReload, ARefusedConfigurationIsLoggedOnceAndTheFixedOneApplied) {
  MountedConfig config(kStart);
  Following berth(config.path());
  const auto engine = berth.engine();
  const std::string bad = "profile: first-fit\nreservationSeconds: soon\n";
  for (int i = 0; i < 3; ++i) {
    config.Publish(bad);
    berth.Look();
    EXPECT_EQ(berth.engine(), engine);
    EXPECT_TRUE(berth.Shows(kStart));
  }
  EXPECT_EQ(berth.Counts(), "0 3 0 1");
  config.Publish("profile: first-fit\nreservationSeconds: 9\n");
  berth.Look();
  EXPECT_EQ(berth.profile(), "first-fit");
  EXPECT_EQ(berth.Counts(), "1 3 0 0");
  const auto lines = berth.Lines();
  ASSERT_EQ(EventsOf(lines), (Events{"config_refused", "policy_changed", "config_applied"}));
  EXPECT_EQ(lines[0]["level"], "error");
  EXPECT_EQ(lines[0]["hash"], Sha256Hex(bad).substr(0, 12));
  const std::string error = lines[0]["error"];
  EXPECT_TRUE(error.starts_with(config.path() + ":2: reservationSeconds: want")) << error;
}

TEST(ConfigReload, OtherBytesWithTheSameSettingsKeepTheEngine) {
  MountedConfig config(kStart);
  Following berth(config.path());
  const auto engine = berth.engine();
  config.Publish(kStart);
  berth.Look();
  EXPECT_EQ(berth.Counts(), "0 0 1 0");
  const std::string commented = "# why\nprofile: best-fit\n";
  config.Publish(commented);
  berth.Look();
  EXPECT_EQ(berth.Counts(), "0 0 2 0");
  EXPECT_TRUE(berth.Shows(commented));
  config.Publish("profile: best-fit\nlogLevel: warn\n");  // not the policy
  berth.Look();
  EXPECT_EQ(berth.Counts(), "1 0 2 0");
  EXPECT_EQ(berth.engine(), engine);
}

TEST(ConfigReload, CutOffAtAnyByteItKeepsTheLastGoodOne) {
  const OrdinaryConfig config(kStart);
  Following berth(config.path());
  const auto engine = berth.engine();
  // Without its last bracket it is nothing, wherever it ends.
  const std::string text =
      "{profile: mine, profiles: [{name: mine, scorers: [{name: \"best-fit\", weight: 2}]}], "
      "traits: [{name: a, labels: [x]}], logLevel: warn}";
  for (std::size_t size = 0; size < text.size(); ++size) {
    config.Edit(text.substr(0, size));
    berth.Look();
    ASSERT_EQ(berth.engine(), engine) << size;
    ASSERT_TRUE(berth.Shows(kStart)) << size;
  }
  EXPECT_EQ(berth.Counts(), "0 " + std::to_string(text.size()) + " 0 1");
  config.Edit(text);
  berth.Look();
  EXPECT_EQ(berth.profile(), "mine");
}

TEST(ConfigReload, ACutOffFileIsAppliedOnlyIfItIsAConfiguration) {
  const OrdinaryConfig config(kStart);
  Following berth(config.path());
  const std::string text =
      "# comment\napiVersion: berth.dev/v1alpha1\nprofile: first-fit\nmachineTypes:\n"
      "- {name: a, gpus: 1}\n- name: b\n  gpus: 2\nreservationSeconds: 60\n";
  std::string in_use = "best-fit";
  std::size_t refused = 0;
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const std::string part = text.substr(0, size);
    const auto expected = LoadConfig(part, "");
    const bool is_blank = part.find_first_not_of('\n') == std::string::npos;
    if (expected && !is_blank) in_use = expected->profile;
    if (!expected) ++refused;
    config.Edit(part);
    berth.Look();
    ASSERT_EQ(berth.profile(), in_use) << part;
  }
  EXPECT_GT(refused, 30u);
  EXPECT_EQ(in_use, "first-fit");
}

TEST(ConfigReload, WhatNeedsARestartIsNamedAndTheRestIsApplied) {
  MountedConfig config(kStart);
  Following berth(config.path());
  config.Publish("profile: first-fit\nserver: {threads: 7}\nresources: []\n");
  berth.Look();
  EXPECT_EQ(berth.profile(), "first-fit");
  EXPECT_EQ(berth.Counts(), "1 0 0 0");
  EXPECT_EQ(berth.Metric("berth_config_needs_restart"), "1");
  config.Publish("profile: first-fit\n");
  berth.Look();
  EXPECT_EQ(berth.Metric("berth_config_needs_restart"), "0");
  const auto lines = berth.Lines();
  ASSERT_EQ(EventsOf(lines), (Events{"policy_changed", "config_applied", "config_needs_restart",
                                     "config_unchanged"}));
  EXPECT_EQ(lines[2]["level"], "warn");
  EXPECT_EQ(lines[2]["settings"], "resources, server.threads");
}

TEST(ConfigReload, TheLogLevelIsApplied) {
  MountedConfig config(kStart);
  Following berth(config.path());
  EXPECT_FALSE(berth.log().Enabled(LogLevel::kDebug));
  config.Publish("profile: best-fit\nlogLevel: debug\n");
  berth.Look();
  EXPECT_TRUE(berth.log().Enabled(LogLevel::kDebug));
  config.Publish("profile: best-fit\nlogLevel: error\n");
  berth.Look();
  EXPECT_FALSE(berth.log().Enabled(LogLevel::kWarn));
}

TEST(ConfigReload, TheShareOfDecisionsThatChangeIsShown) {
  MountedConfig config(kStart);
  Following berth(config.path());
  const Json both = Json::array({"n1", "n2"});
  for (const int gpus : {1, 4, 3, 3}) {  // best-fit: n2, else n1; first-fit: n1
    berth.service().Ask("filter", ArgsWithNames(PodWithGpus("1", gpus), both));
  }
  EXPECT_EQ(berth.Metric("berth_config_decisions_changed_ratio"), "0");
  config.Publish("profile: first-fit\n");
  berth.Look();
  EXPECT_EQ(berth.Metric("berth_config_decisions_changed_ratio"), "0.25");
  const auto lines = berth.Lines();
  EXPECT_EQ(lines.at(0)["decisions_compared"], 4);
  EXPECT_EQ(lines.at(0)["decisions_changed"], 1);
}

}  // namespace
}  // namespace berth::test::config_reload_test
