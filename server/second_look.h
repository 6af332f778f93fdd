// SPDX-License-Identifier: Apache-2.0
//
// SecondLook: a pod that filter found no node for gets a second look when the cluster changes.
//
// kube-scheduler hears of a freed GPU some milliseconds before we do. It asks, and a "no" from our
// older state would let the pod sleep for minutes. Two things are done about it:
//   - the answer is held back for some milliseconds, and given anew on each newer state. Since
//     kube-scheduler asks about one pod at a time, this stops it: waits are short, and all of them
//     together take a small part of the time;
//   - a pod that was refused all the same is woken by the PodWaker when there is room for it
//     (refused_pods.h).
//
// Any thread may call it. Answers are given, and pods are woken, on a thread of the object.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/cluster_state.h"
#include "server/extender/ports.h"
#include "server/extender/refused_pods.h"

namespace berth {

class SecondLook {
 public:
  struct Waits {
    Duration usual = std::chrono::milliseconds(15);
    // Of a pod for which others are being evicted: the room will be there, and is for this pod.
    Duration for_evicted = std::chrono::milliseconds(100);
    Duration saved = std::chrono::milliseconds(150);  // of usual waits, while none is needed...
    double part = 0.05;                               // ...by this part of the time that passes
  };

  // References: they outlive the object.
  struct Parts {
    ClusterState& state;
    PodWaker& waker;
    const PodGroups* groups;
    RefusedPods::Fits fits;
  };

  SecondLook(const Parts& parts, const Waits& waits);
  explicit SecondLook(const Parts& parts) : SecondLook(parts, Waits()) {}
  // Gives the answers that are still held back.
  ~SecondLook();
  SecondLook(const SecondLook&) = delete;
  SecondLook& operator=(const SecondLook&) = delete;

  // Answers when asked for the last time, or when there is something better to say than "no"; tells
  // whether it did.
  using Answer = std::function<bool(bool is_last)>;
  // Calls `answer` until it has answered. False: now is no time to wait, and nothing was called.
  [[nodiscard]] bool Hold(bool for_evicted, Answer answer) BERTH_EXCLUDES(mutex_);

  // What became of a filter in the end.
  void Refused(std::shared_ptr<const PodRequest> pod, std::shared_ptr<const Snapshot> snapshot)
      BERTH_EXCLUDES(mutex_);
  void Found(const PodId& pod) BERTH_EXCLUDES(mutex_);

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
  };
  using News = std::variant<Refusal, PodId>;

  void Changed() BERTH_EXCLUDES(mutex_);
  void Run() BERTH_EXCLUDES(mutex_);
  // Waits for work; false: the object ends.
  bool NextWork(std::vector<Held>& held, std::vector<News>& news) BERTH_EXCLUDES(mutex_);
  void AnswerHeld(std::vector<Held> held, bool ending) BERTH_EXCLUDES(mutex_);
  [[nodiscard]] bool MayWait() BERTH_REQUIRES(mutex_);

  const Parts parts_;
  const Waits waits_;
  RefusedPods refused_;  // of the thread alone
  Mutex mutex_;
  CondVar work_;
  std::vector<Held> held_ BERTH_GUARDED_BY(mutex_);
  std::vector<News> news_ BERTH_GUARDED_BY(mutex_);
  bool changed_ BERTH_GUARDED_BY(mutex_) = false;  // there is something to look at
  bool ending_ BERTH_GUARDED_BY(mutex_) = false;
  Instant next_look_ BERTH_GUARDED_BY(mutex_) = Instant::max();
  Duration saved_ BERTH_GUARDED_BY(mutex_);
  Instant counted_ BERTH_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace berth
