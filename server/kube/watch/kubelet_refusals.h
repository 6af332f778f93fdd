// SPDX-License-Identifier: Apache-2.0
//
// KubeletRefusals: nodes that swallow pods. A dead GPU, or a device plugin that answers nothing,
// makes the kubelet refuse every pod with GPUs that is bound there (UnexpectedAdmissionError,
// OutOf...); the node stays ready, and so idle that a scheduler which packs sends the next pod
// there too (pytorch/ci-infra pull request 1058: 554 pods in 1 h 46 min). A Topology Manager
// (TopologyAffinityError) refuses every pod of one shape, and takes the others.
//
// What a refusal is about is said by its words alone, if at all: the GPUs, or something else that
// the pod asks for as well (CPUs, memory, devices of another plugin). Words that name the GPUs'
// resource count against the node, all others against what was asked for: GPUs, CPU, memory and
// whatever else. After kToClose refusals in a row the node gets no pods with GPUs for a while, or
// none that ask for as much, then one more try, after which the next refusal closes it again at
// once and for longer. Where nobody says what they are about, refusals of two asks close the whole
// node if they are of two namespaces and have no other resource in common.
//
// The first pod with GPUs that runs there (that asks for as much) ends it, and so does a node that
// publishes other GPUs, or was not ready. Where something else than GPUs was short, another try is
// made too once a pod with GPUs has left the node.
//
// What counts. Anybody who may create pods can name a node in them (spec.nodeName) and have its
// kubelet refuse them rightly. So only pods count that this process bound, which it knows from its
// own books and not from the pod, and only where the books gave the node's pods no more than it
// has. Refusals right after a start of the kubelet, which may know pods that have ended for a
// moment, are few by four rules: pods count that came after the refusal before was seen, not those
// that were refused with it; the node is to be the same from the bind to the refusal; where it
// changes afterwards, all is forgotten; and where the kubelet says that its devices are in use
// (kDevicesInUse), which the books deny, the first pause is short (kBriefly): it checks its
// checkpoint as soon as it has heard of all pods.
//
// A pod that fails leaves the watch as it was before it failed. So of those that leave before they
// ran the API server is asked what became of them.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/state/cluster_state.h"

namespace berth::kube {

class KubeletRefusals {
 public:
  static constexpr int kToClose = 2;
  static constexpr std::array<Duration, 3> kClosedFor = {
      std::chrono::minutes(10), std::chrono::hours(2), std::chrono::hours(6)};
  static constexpr Duration kBriefly = std::chrono::seconds(30);
  static constexpr std::string_view kDevicesInUse = "requested number of devices unavailable";
  // What was learned of a node that is open is forgotten after that time without a refusal.
  static constexpr Duration kForgotten = std::chrono::hours(24);
  // Pods that are asked about: in one look, and that wait for it; of more the oldest are forgotten.
  static constexpr std::size_t kPerLook = 20;
  static constexpr std::size_t kMostWaiting = 200;
  // Pods that have begun to run since the last look; the same.
  static constexpr std::size_t kMostRunning = 4096;

  struct Stats {
    std::uint64_t refused = 0;    // pods, since the process began; those that do not count too
    std::size_t closed = 0;       // nodes, now
    std::size_t closed_asks = 0;  // pairs of a node and what it takes no pods for, now
  };
  // References and what the functions refer to outlive the object.
  struct Parts {
    ClusterState& state;
    const Clock& clock;
    // Asks what became of the pod: the kubelet's words where it did not admit it, else empty.
    // nullopt: the API server does not answer.
    std::function<std::optional<std::string>(const PodId& pod)> why_not_admitted;
    std::function<void(bool is_problem, std::string_view event, std::string_view text)> log;
  };
  explicit KubeletRefusals(Parts parts) : parts_(std::move(parts)) {}

  // What would have to change for the refusals to be of another machine, or of a kubelet that has
  // started anew.
  struct Facts {
    std::size_t gpus = 0;
    int in_order = 0;
    int places = 0;
    bool ready = true;
    std::int64_t ready_since = 0;
    friend bool operator==(const Facts&, const Facts&) = default;
  };
  // A pod with GPUs that this process bound to a node, as it was then.
  struct Start {
    std::string node;
    Facts facts;
    bool had_room = false;     // in the books, for all pods of the node
    std::uint64_t number = 0;  // in the order of all starts and ends
  };

  // Any thread: a pod with GPUs is shown on the node for the first time, and does not run yet.
  // nullopt: its end says nothing of the node, since it was not bound by this process.
  [[nodiscard]] std::optional<Start> Begins(const std::string& uid, const std::string& node)
      BERTH_EXCLUDES(mutex_);
  // Any thread: the pod left the node before it ran / runs there now. Call the first before the
  // state hears of it.
  void Vanished(const PodId& pod, Start start) BERTH_EXCLUDES(mutex_);
  void Runs(const PodRequest& pod, const std::string& node) BERTH_EXCLUDES(mutex_);

  // Any thread: what was learned is forgotten with the next Look, and its nodes are open again. For
  // the end of a term: the next leader learns anew, and this process may not lead for long.
  void BeginAnew() BERTH_EXCLUDES(mutex_);

  // Call it about once a second, from one thread. Blocks while the API server is asked.
  void Look() BERTH_EXCLUDES(mutex_);

  // Any thread.
  [[nodiscard]] Stats stats() const BERTH_EXCLUDES(mutex_);

 private:
  struct Lost {
    PodId pod;
    Start start;
    std::string gpu_resource = {};          // by which the node gives GPUs
    const char* why_not_counted = nullptr;  // nullptr: it counts
    std::optional<RefusedAsk> ask = {};     // nullopt: cannot be remembered
    int others = 0;                         // pods with GPUs beside it
    std::uint64_t number = 0;               // of its end
  };
  struct Run {
    std::string node;
    std::optional<RefusedAsk> ask;
  };
  // What pods were refused, all those with GPUs or those that ask for the same.
  struct Trouble {
    int refusals = 0;  // in a row
    std::size_t closings = 0;
    bool was_brief = false;  // it was closed for kBriefly already
    std::optional<Instant> closed_until = {};
    std::uint64_t counted = 0;  // the number of the last refusal that counted
    Instant last{};             // when it was heard of
  };
  struct AskTrouble : Trouble {
    RefusedAsk ask;
    int others = 0;       // as in Lost; 0 unless something else than GPUs was short
    std::string owner;    // the namespace of the pod that was refused last
    bool unsaid = false;  // nobody said why, and no pod with GPUs has run there since
  };
  struct NodeTrouble {
    Facts facts;
    Trouble all;
    std::vector<AskTrouble> asks;  // at most kMostRefusedAsks
  };

  [[nodiscard]] std::optional<Facts> FactsOf(const std::string& node) const;
  void Recover(const Run& run);
  // Until one question goes unanswered: the rest is for the next look.
  void AskAbout(const std::vector<Lost>& lost, Instant now) BERTH_EXCLUDES(mutex_);
  void Refused(const Lost& lost, const std::string& words, Instant now) BERTH_EXCLUDES(mutex_);
  // Returns what follows from it, for the log.
  [[nodiscard]] std::string Count(const Lost& lost, std::string_view words, Instant now);
  // How long it is closed now.
  [[nodiscard]] static Duration NextPause(Trouble& trouble, std::string_view words);
  [[nodiscard]] static AskTrouble& TroubleOf(NodeTrouble& node, const Lost& lost);
  // Whether another ask, of another namespace, was refused without a reason too.
  [[nodiscard]] static bool IsOneOfMany(const NodeTrouble& node, const Lost& lost);
  // Open again, or forgotten altogether.
  void Reopen(Instant now);
  [[nodiscard]] bool ReopenAsks(const std::string& name, NodeTrouble& node, bool is_another,
                                Instant now);
  void ForgetAll();
  void CountClosed() BERTH_EXCLUDES(mutex_);
  // Whether the state has what Publish told it: a node that went took it along.
  [[nodiscard]] bool IsKnown(const std::string& name, const NodeTrouble& node) const;
  // Tells the state what the node takes no pods for now.
  void Publish(const std::string& name, const NodeTrouble& node);

  const Parts parts_;
  std::map<std::string, NodeTrouble> trouble_;  // by node; the looking thread's
  mutable Mutex mutex_;
  std::deque<Lost> lost_ BERTH_GUARDED_BY(mutex_);
  std::deque<Run> run_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t number_ BERTH_GUARDED_BY(mutex_) = 0;
  bool begins_anew_ BERTH_GUARDED_BY(mutex_) = false;
  Stats stats_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::kube
