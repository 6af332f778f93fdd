// SPDX-License-Identifier: Apache-2.0
//
// SecondLook: a pod for which filter found no node is tried again when the cluster changes.
//
// kube-scheduler learns of a freed GPU some milliseconds before Berth. It asks, and a refusal from
// the older state would let the pod wait for minutes. So:
//   - the refusal is held back for some milliseconds, and filter runs again on each newer state.
//     kube-scheduler asks about one pod at a time, so this blocks it: the waits are short, and all
//     of them together take a small part of the time;
//   - a pod that is refused all the same is woken by the PodWaker once there is room for it, or it
//     asks for something else (refused_pods.h).
//
// Any thread may call it. A thread of the object answers and wakes pods.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/state/cluster_state.h"
#include "server/extender/ports/ports.h"
#include "server/extender/waiting/refused_pods.h"

namespace berth {

class SecondLook {
 public:
  struct Waits {
    Duration usual = std::chrono::milliseconds(15);
    // For a pod for which others are being evicted: the room is certain to come, and is this pod's.
    Duration for_evicted = std::chrono::milliseconds(100);
    Duration saved = std::chrono::milliseconds(150);  // of usual waits, while none is needed...
    double part = 0.05;                               // ...by this part of the time that passes
  };

  // References: they outlive the object.
  struct Parts {
    ClusterState& state;
    PodWaker& waker;
    const PodGroups* groups;
    const DeviceRooms& rooms;
    RefusedPods::Fits fits;
  };

  SecondLook(const Parts& parts, const Waits& waits);
  explicit SecondLook(const Parts& parts) : SecondLook(parts, Waits()) {}
  // Sends the answers that are still held back.
  ~SecondLook();

  // Answers if this is the last attempt, or if the answer is not a refusal. Returns whether it
  // answered.
  using Answer = std::function<bool(bool is_last)>;
  // Calls `answer` until it has answered. False: waiting is not allowed now; nothing was called.
  [[nodiscard]] bool Hold(bool for_evicted, Answer answer) BERTH_EXCLUDES(mutex_);

  // The final outcome of a filter (FilterAnswer::kept_out).
  void Refused(std::shared_ptr<const PodRequest> pod, std::shared_ptr<const Snapshot> snapshot,
               std::optional<std::uint64_t> kept_out = {}) BERTH_EXCLUDES(mutex_);
  void Found(const PodId& pod) BERTH_EXCLUDES(mutex_);
  // The workload classes are others now (RefusedPods::ClassesChanged).
  void ClassesChanged() BERTH_EXCLUDES(mutex_);
  // What the pods that may be woken take (RefusedPods::bytes).
  [[nodiscard]] std::size_t refused_bytes() const { return refused_.bytes(); }

 private:
  static constexpr std::size_t kMostHeld = 64;
  static constexpr std::size_t kMostNews = 1 << 16;

  struct Held {
    Answer answer;
    Instant until;
  };
  struct Refusal {
    std::shared_ptr<const PodRequest> pod;
    std::shared_ptr<const Snapshot> snapshot;
    std::optional<std::uint64_t> kept_out;
  };
  struct OtherClasses {};
  using News = std::variant<Refusal, PodId, OtherClasses>;

  void Changed() BERTH_EXCLUDES(mutex_);
  void Run() BERTH_EXCLUDES(mutex_);
  // Waits for work; false: the object ends.
  bool NextWork(std::vector<Held>& held, std::vector<News>& news) BERTH_EXCLUDES(mutex_);
  void AnswerHeld(std::vector<Held> held, bool ending) BERTH_EXCLUDES(mutex_);
  [[nodiscard]] bool MayWait() BERTH_REQUIRES(mutex_);

  const Parts parts_;
  const Waits waits_;
  RefusedPods refused_;  // only used by the thread, but bytes()
  Mutex mutex_;
  CondVar work_;
  std::vector<Held> held_ BERTH_GUARDED_BY(mutex_);
  std::vector<News> news_ BERTH_GUARDED_BY(mutex_);
  bool changed_ BERTH_GUARDED_BY(mutex_) = false;  // there is work
  // Somebody waits for a change: each one is work. Otherwise the thread sleeps, while the cluster
  // changes some times for each pod that is placed.
  bool is_awaited_ BERTH_GUARDED_BY(mutex_) = false;
  bool ending_ BERTH_GUARDED_BY(mutex_) = false;
  Instant next_look_ BERTH_GUARDED_BY(mutex_) = Instant::max();
  Duration saved_ BERTH_GUARDED_BY(mutex_);
  Instant counted_ BERTH_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace berth
