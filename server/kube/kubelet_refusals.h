// SPDX-License-Identifier: Apache-2.0
//
// KubeletRefusals: nodes that swallow pods. A dead GPU, or a device plugin that answers nothing,
// makes the kubelet refuse every pod with GPUs that is bound there (UnexpectedAdmissionError,
// OutOf...); the node stays ready, and so idle that a scheduler which packs sends the next pod
// there too (pytorch/ci-infra pull request 1058: 554 pods in 1 h 46 min).
//
// After kToClose refusals in a row the node gets no pods with GPUs for a while, then one more try,
// after which the next refusal closes it again at once and for longer. The first pod with GPUs that
// runs there ends it, and so does a node that publishes other GPUs, or was not ready.
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
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/cluster_state.h"

namespace berth::kube {

class KubeletRefusals {
 public:
  static constexpr int kToClose = 2;
  static constexpr std::array<Duration, 3> kClosedFor = {
      std::chrono::minutes(10), std::chrono::hours(2), std::chrono::hours(6)};
  // Pods that are asked about: in one look, and that wait for it; of more the oldest are forgotten.
  static constexpr std::size_t kPerLook = 20;
  static constexpr std::size_t kMostWaiting = 200;

  struct Stats {
    std::uint64_t refused = 0;  // pods, since the process began
    std::size_t closed = 0;     // nodes, now
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

  // Any thread: a pod with GPUs left the node before it ran / runs there now.
  void Vanished(PodId pod, std::string node) BERTH_EXCLUDES(mutex_);
  void Runs(const std::string& node) BERTH_EXCLUDES(mutex_);

  // Any thread: what was learned is forgotten with the next Look, and its nodes are open again. For
  // the end of a term: whoever leads next learns anew, and this process may not lead for long.
  void BeginAnew() BERTH_EXCLUDES(mutex_);

  // Call it about once a second, from one thread. Blocks while the API server is asked.
  void Look() BERTH_EXCLUDES(mutex_);

  // Any thread.
  [[nodiscard]] Stats stats() const BERTH_EXCLUDES(mutex_);

 private:
  struct Lost {
    PodId pod;
    std::string node;
  };
  // What would have to change for the refusals to be of another machine.
  struct Facts {
    std::size_t gpus = 0;
    int in_order = 0;
    int places = 0;
    bool ready = true;
    friend bool operator==(const Facts&, const Facts&) = default;
  };
  struct Trouble {
    int refusals = 0;  // in a row
    std::size_t closings = 0;
    std::optional<Instant> closed_until = {};
    Facts facts;
  };

  [[nodiscard]] std::optional<Facts> FactsOf(const std::string& node) const;
  // Until one question goes unanswered: the rest is for the next look.
  void AskAbout(const std::vector<Lost>& lost, Instant now) BERTH_EXCLUDES(mutex_);
  [[nodiscard]] bool IsClosed(const std::string& node) const;
  void Refused(const Lost& lost, const std::string& words, Instant now);
  // Open again, or forgotten altogether.
  void Reopen(Instant now);
  void ForgetAll();
  void Close(const std::string& node, bool closed);

  const Parts parts_;
  std::map<std::string, Trouble> trouble_;  // by node; the looking thread's
  mutable Mutex mutex_;
  std::deque<Lost> lost_ BERTH_GUARDED_BY(mutex_);
  std::set<std::string> run_ BERTH_GUARDED_BY(mutex_);
  bool begins_anew_ BERTH_GUARDED_BY(mutex_) = false;
  Stats stats_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::kube
