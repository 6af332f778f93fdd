// SPDX-License-Identifier: Apache-2.0
//
// Guard: the parent of the worker. It does no work of its own that could go wrong: where the worker
// ends, hangs or is stopped, a short-lived process hands the plugins back to the kubelet, and a new
// worker takes over later. Where the kubelet has the plugins beside the worker (Kubernetes 1.37)
// and the worker had lasted, the new one starts at once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "base/result.h"
#include "node/guard/heartbeat.h"
#include "node/interposer/folder_watch.h"
#include "node/kubelet/registrar.h"
#include "node/worker.h"
#include "server/telemetry/log.h"

namespace berth::node {

// Handing the plugins back: each is registered with the kubelet under its own socket, so that the
// node works as without this agent.

// What the worker is doing meanwhile.
enum class HandBackWhen {
  kWorkerGone,    // the kubelet may not have seen its end yet
  kWorkerServes,  // and the kubelet keeps both (Kubernetes 1.37)
  kLastLook,      // gone, after a hand-back while it served: only what the kubelet lacks
};

struct HandBackOptions {
  std::string folder;  // the kubelet's, of device plugins
  HandBackWhen when = HandBackWhen::kWorkerGone;
  Duration limit = std::chrono::seconds(5);
};

struct HandedBack {
  PluginAddress plugin;
  bool registered = false;
  std::size_t devices = 0;  // that the kubelet has now; 0 also where it does not say
  std::string problem;
};

// Registers each plugin and looks whether the kubelet has devices of it then; again where it has
// none: the end of the worker's stream may come late, and takes a newer registration with it. One
// that the kubelet has directly already (Kubernetes 1.37) is left as it is.
std::vector<HandedBack> HandBack(const std::vector<PluginAddress>& plugins, PodResources& kubelet,
                                 const HandBackOptions& options);

// Child: another process of this program, with a time by which it must have ended.

// One thread.
class Child {
 public:
  Child() = default;
  ~Child();  // kills it, and waits
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // This program with these arguments. It gets SIGTERM when we end, and inherits the descriptor;
  // -1: none. False where no process can be had. Requires: !running().
  bool Start(std::vector<std::string> arguments, Duration limit, int descriptor = -1);

  void Signal(int signal) const;

  // Looks whether it has ended, and kills it where its time is over. True once, after its end.
  bool Ended();
  // It is stopped by a signal.
  [[nodiscard]] bool stopped() const { return stopped_; }

  [[nodiscard]] bool running() const { return process_ > 0; }
  [[nodiscard]] pid_t process() const { return process_; }
  [[nodiscard]] Instant started() const { return started_; }
  // "exit 1", "signal 9"
  [[nodiscard]] const std::string& outcome() const { return outcome_; }

 private:
  pid_t process_ = 0;
  bool stopped_ = false;
  Instant started_{};
  Instant end_{};
  std::string outcome_;
};

// How long a worker may give no heartbeat.
struct GuardLimits {
  Duration beats_every = std::chrono::milliseconds(120);
  Duration asleep = std::chrono::milliseconds(250);  // all its threads wait
  Duration busy = std::chrono::seconds(2);           // it may lack a processor
  Duration to_start = std::chrono::seconds(5);       // before the first beat
};

class Guard {
 public:
  // Requires: SIGTERM, SIGINT and SIGCHLD are blocked in all threads.
  Guard(NodeOptions options, GuardLimits limits, Log& log, Heartbeat heartbeat);

  // Until SIGTERM or SIGINT; then the plugins are handed back. Error: kUnavailable where the folder
  // cannot be used.
  Status Run();

 private:
  Status TakeLock();
  void StartWorker();
  void WatchWorker();
  void WorkerEnded();
  void StartHandBack(HandBackWhen when);
  void HandedBack();
  void Stop();
  void WatchKubelet();
  // It has each plugin beside the worker, and goes on with them where the worker ends.
  [[nodiscard]] bool KubeletHasPlugins() const;
  [[nodiscard]] const char* WhatIsWrong() const;
  // Waits for a signal; true: SIGTERM or SIGINT came.
  bool WaitForSignal(Duration limit);

  const NodeOptions options_;
  const GuardLimits limits_;
  Log& log_;
  Heartbeat heartbeat_;
  const AgentFolder folder_;
  Child worker_, hand_back_, withdraw_;
  bool look_ = false;  // a child may have changed
  bool stopping_ = false;
  bool done_ = false;
  bool handed_back_early_ = false;  // while the worker still served
  bool look_again_ = false;         // after the hand-back that runs
  Instant stop_by_{};
  Duration pause_;
  Instant next_start_{};
  Instant ended_{};
  FolderWatch kubelet_;
};

}  // namespace berth::node
