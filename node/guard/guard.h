// SPDX-License-Identifier: Apache-2.0
//
// Guard: the parent of the worker. It does no work of its own that could go wrong: where the worker
// ends, hangs or is stopped, a short-lived process hands the plugins back to the kubelet, and a new
// worker takes over later. Where the kubelet has the plugins beside the worker (Kubernetes 1.37)
// and the worker had lasted, the new one starts at once.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "node/interposer/folder_watch.h"
#include "node/kubelet/registrar.h"
#include "server/telemetry/log.h"

namespace berth::node {

// The worker: the process that does the work, and the short ones that clean up after it. Each
// returns the status to exit with.

// The command line of berth-node; guard, worker and their helpers get the same.

struct NodeOptions {
  std::string folder = "/var/lib/kubelet/device-plugins";
  std::string pod_resources = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string node_name;
  std::string kubeconfig;   // "" = the pod's service account; without one there is no API server
  std::string kubelet_url;  // "" = not asked for its policies
  std::string driver_root;  // "" = the root of this file system
  bool lift_numa = false;
};

// The options as arguments of another process of this program.
std::vector<std::string> Arguments(const NodeOptions& options);

enum class HandBackWhen;

// Serves until SIGTERM. `heartbeat`: the descriptor of the guard's memory; -1: there is no guard.
// Requires: SIGTERM is blocked in all threads.
int RunWorker(const NodeOptions& options, int heartbeat, Log& log);

// Hands the plugins back to the kubelet.
int RunHandBack(const NodeOptions& options, HandBackWhen when, Log& log);

// Takes berth.dev/carries-out from the Node.
int RunWithdraw(const NodeOptions& options, Log& log);

// Heartbeat: a page of memory that guard and worker share. The worker writes, the guard reads.

// Any thread may call it.
class Heartbeat {
 public:
  // The guard's: new memory. Error: kUnavailable.
  static Result<Heartbeat> Create();
  // The worker's: that of the guard, by its file descriptor. Error: kInvalidArgument.
  static Result<Heartbeat> Join(int descriptor);
  ~Heartbeat();
  Heartbeat(Heartbeat&& other) noexcept;

  void Beat();
  void Reset();  // no beat yet
  // Time since the last beat; nullopt before the first.
  [[nodiscard]] std::optional<Duration> Age() const;

  // Whether the kubelet keeps a plugin while another one registers for its resource (Kubernetes
  // 1.37): then the plugin can be handed back before the worker ends.
  void SetKubeletKeepsBoth(bool keeps);
  [[nodiscard]] bool KubeletKeepsBoth() const;

  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  struct Page {
    std::atomic<std::int64_t> last_ns;  // of the steady clock, the same in all processes; 0: none
    std::atomic<std::int32_t> keeps_both;
  };
  static Result<Heartbeat> Map(int descriptor);
  Heartbeat(int descriptor, Page* page) : descriptor_(descriptor), page_(page) {}

  int descriptor_;
  Page* page_;
};

// Giving back the pages of programs and libraries that were used at the start only. They stay in
// the page cache: one that is used again costs a short fault.

struct MappedRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  friend bool operator==(const MappedRange&, const MappedRange&) = default;
};

// The ranges of a text as in /proc/self/smaps that are read from files and were never written:
// dropping others would lose what was written, such as relocated addresses.
std::vector<MappedRange> CleanFileRanges(std::string_view smaps);

// Drops them from this process. Any thread.
void TrimResident();

// What a process is doing, from /proc.
enum class ProcessState {
  kGone,
  kStopped,   // by a signal or a debugger
  kBusy,      // a thread runs, or waits for a processor or a disk
  kSleeping,  // all threads wait for something else
};

ProcessState StateOf(pid_t process);

// The state's letter in the text of /proc/PID/stat; '\0': none. A program's name may have any
// bytes.
char StateLetter(std::string_view stat);

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
