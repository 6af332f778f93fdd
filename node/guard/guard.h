// SPDX-License-Identifier: Apache-2.0
//
// Guard: the parent of the worker. It does no work of its own that could go wrong: where the worker
// ends, hangs or is stopped, a short-lived process hands the plugins back to the kubelet, and a new
// worker takes over later. Where the kubelet has the plugins beside the worker (Kubernetes 1.37)
// and the worker had lasted, the new one starts at once.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "node/guard/child.h"
#include "node/guard/heartbeat.h"
#include "node/interposer/folder_watch.h"
#include "node/options.h"
#include "server/telemetry/log.h"

namespace berth::node {

enum class HandBackWhen;

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
