// SPDX-License-Identifier: Apache-2.0
//
// The command line of berth-node: exit 0 success, 1 failure, 2 usage.
#include <sys/prctl.h>

#include <csignal>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "base/version.h"
#include "node/facts/probe.h"
#include "node/guard/guard.h"
#include "server/cli/command_line.h"
#include "server/telemetry/log.h"

namespace berth::node {
namespace {

struct Flags {
  NodeOptions options;
  int heartbeat = -1;
  bool worker_lives = false;
  bool last_look = false;
};

void AddOptions(CLI::App& app, NodeOptions& options) {
  app.add_option("--dir", options.folder, "The kubelet's folder of device plugins")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--pod-resources", options.pod_resources, "The kubelet's PodResources socket")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("--node-name", options.node_name, "Name of this Node")
      ->type_name("NAME")
      ->envname("NODE_NAME");
  app.add_option("--kubeconfig", options.kubeconfig,
                 "Kubeconfig of the API server; default: the pod's service account")
      ->type_name("FILE");
  app.add_option("--kubelet-url", options.kubelet_url,
                 "Address of the kubelet, to read its topology policies from: "
                 "https://10.0.0.7:10250; default: they are not read")
      ->type_name("URL");
  app.add_option("--driver-root", options.driver_root,
                 "Where the root of the GPU driver is mounted; default: /")
      ->type_name("DIR");
  app.add_flag("--lift-numa", options.lift_numa,
               "Do not tell the kubelet the NUMA nodes of devices, so that its Topology Manager "
               "does not limit the choice");
}

// SIGTERM and the end of children are waited for, by threads that can do something about it.
void BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

int RunGuard(const NodeOptions& options, Log& log) {
  Result<Heartbeat> heartbeat = Heartbeat::Create();
  if (!heartbeat) {
    log.Write(LogLevel::kError, "not_started", {{"problem", heartbeat.error().message}});
    return CommandLine::kFailure;
  }
  Guard guard(options, {}, log, *std::move(heartbeat));
  const Status ran = guard.Run();
  if (ran) return 0;
  log.Write(LogLevel::kError, "not_started", {{"problem", ran.error().message}});
  return CommandLine::kFailure;
}

HandBackWhen WhenOf(const Flags& flags) {
  if (flags.last_look) return HandBackWhen::kLastLook;
  return flags.worker_lives ? HandBackWhen::kWorkerServes : HandBackWhen::kWorkerGone;
}

int Main(int argc, char** argv) {
  prctl(PR_SET_NAME, "berth-node");  // also where it was started as /proc/self/exe
  CLI::App app("The agent of a GPU node: the kubelet uses the GPUs that Berth chose");
  app.set_version_flag("--version", "berth-node " + std::string(BerthVersion()));
  Flags flags;
  AddOptions(app, flags.options);
  app.fallthrough();
  app.require_subcommand(0, 1);
  CLI::App* const facts = app.add_subcommand("facts", "Print what this machine is, and exit");
  CLI::App* const worker = app.add_subcommand("worker", "Serve without a guard");
  worker->add_option("--heartbeat", flags.heartbeat, "Descriptor of the guard's memory")->group("");
  CLI::App* const hand_back =
      app.add_subcommand("hand-back", "Register the device plugins with the kubelet, and exit");
  hand_back->add_flag("--worker-lives", flags.worker_lives, "The worker still serves")->group("");
  hand_back->add_flag("--last-look", flags.last_look, "After a hand-back with --worker-lives")
      ->group("");
  CLI::App* const withdraw =
      app.add_subcommand("withdraw", "Take berth.dev/carries-out from the Node, and exit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : CommandLine::kUsage;
  }
  if (*facts) {
    ProbeRoots roots;
    roots.driver = flags.options.driver_root;
    return PrintFacts(roots);
  }
  BlockSignals();
  Log log(LogLevel::kInfo);
  if (*worker) return RunWorker(flags.options, flags.heartbeat, log);
  if (*hand_back) return RunHandBack(flags.options, WhenOf(flags), log);
  if (*withdraw) return RunWithdraw(flags.options, log);
  return RunGuard(flags.options, log);
}

}  // namespace
}  // namespace berth::node

int main(int argc, char** argv) { return berth::node::Main(argc, argv); }
