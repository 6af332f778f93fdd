// SPDX-License-Identifier: Apache-2.0
//
// The command line of berth-node: exit 0 success, 1 failure, 2 usage.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <thread>

#include "node/interposer/interposer.h"

namespace berth::node {
namespace {

class Forwards final : public DeviceChooser {
 public:
  std::vector<std::string> Choose(const PreferredQuestion& question,
                                  const AskPlugin& ask_plugin) override {
    return ask_plugin(question.available).value_or(std::vector<std::string>{});
  }
  void Given(const std::string& /*resource*/, const std::vector<std::string>& /*ids*/) override {}
};

class NoReports final : public InterposerReports {
 public:
  void Carries(std::set<std::string> /*resources*/) override {}
  void Unhealthy(const std::string& /*resource*/, std::set<std::string> /*devices*/) override {}
  void PluginRegistered() override {}
};

int Main(int argc, char** argv) {
  CLI::App app("The agent of a GPU node: makes the kubelet use the GPUs that Berth chose");
  InterposerOptions options;
  options.folder = "/var/lib/kubelet/device-plugins";
  app.add_option("--dir", options.folder, "The kubelet's folder of device plugins");
  app.add_flag("--lift-numa", options.lift_numa, "Do not pass the NUMA nodes of devices on");
  CLI11_PARSE(app, argc, argv);
  Log log(LogLevel::kInfo);
  Forwards chooser;
  NoReports reports;
  CallWatch calls;
  Interposer interposer(options, chooser, reports, calls, log);
  const Status ran = interposer.Run();
  return ran ? 0 : 1;
}

}  // namespace
}  // namespace berth::node

int main(int argc, char** argv) { return berth::node::Main(argc, argv); }
