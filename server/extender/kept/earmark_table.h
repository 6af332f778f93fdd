// SPDX-License-Identifier: Apache-2.0
//
// EarmarkTable: the one EarmarkLine of the service (scoring/earmarks/earmark_line.h), for all
// threads. Who asks about a pod looks at the line first if something has changed; while one thread
// looks the others take what was found last, and nobody waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/earmarks/earmark_line.h"

namespace berth {

// Any thread may call any function.
class EarmarkTable {
 public:
  // As EarmarkLine.
  explicit EarmarkTable(const RunTimeTable* learned = nullptr, const JobEndTable* jobs = nullptr,
                        EarmarkLine::Nominated nominated = {})
      : line_(learned, jobs, std::move(nominated)) {}

  // Whether the pod still waits for a node, as the cluster has it.
  using Waits = EarmarkLine::Waits;
  using Wake = std::function<void(const std::vector<PodId>& pods)>;

  // Pods that found no node, or a gang that did. Told between two looks beyond kMostNews it is
  // forgotten: kube-scheduler asks again.
  static constexpr std::size_t kMostNews = 4096;
  void Stand(InLine waiter, std::shared_ptr<const Snapshot> refused_on) BERTH_EXCLUDES(mutex_);
  // Who has its node: by the UID of the pod, by the text of the gang's id.
  void Leave(std::string name) BERTH_EXCLUDES(mutex_);
  // As EarmarkLine::Agree.
  void Agree(std::string uid, std::vector<EarmarkLine::Agreed> nodes) BERTH_EXCLUDES(mutex_);

  // Of pods that nobody asks about so many stand in line: kube-scheduler tries all pods that wait,
  // and takes as long to come to the one that room is kept for.
  static constexpr std::size_t kMostUnasked = 256;
  static constexpr std::size_t kMostOfNamespace = 64;  // of these: some may fit no node at all
  // Whether it is time for them again, once in kBetweenScans: true to one thread.
  [[nodiscard]] bool IsTimeForUnasked(Instant now) BERTH_EXCLUDES(mutex_);

  // What is kept at this moment, by it and of `kept`. limits: empty: nothing in line. wake: gets
  // the pods that may go now, after all locks. scope: kAll for a thread on which nobody waits.
  [[nodiscard]] Reservations On(const std::shared_ptr<const Snapshot>& snapshot,
                                const std::shared_ptr<const KeptNodes>& kept,
                                const std::optional<EarmarkLimits>& limits,
                                const EarmarkLine::Time& time, const Waits& waits, const Wake& wake,
                                EarmarkLine::Scope scope) BERTH_EXCLUDES(mutex_);
  // What was found last, and `kept`.
  [[nodiscard]] Reservations Newest(std::shared_ptr<const KeptNodes> kept, Instant now) const
      BERTH_EXCLUDES(mutex_);

 private:
  struct Stood {
    InLine waiter;
    std::shared_ptr<const Snapshot> refused_on;
  };
  struct Agreed {
    std::string uid;
    std::vector<EarmarkLine::Agreed> nodes;
  };
  using News = std::variant<Stood, std::string, Agreed>;
  static constexpr Duration kBetweenCounts = std::chrono::seconds(1);  // of who still waits

  // Whether a look would find anything new.
  [[nodiscard]] bool IsDue(const std::shared_ptr<const Snapshot>& snapshot,
                           const std::shared_ptr<const KeptNodes>& kept, Instant now) const
      BERTH_EXCLUDES(mutex_);
  void LookAt(const std::shared_ptr<const Snapshot>& snapshot,
              const std::shared_ptr<const KeptNodes>& kept, const EarmarkLimits& limits,
              const EarmarkLine::Time& time, const Waits& waits, EarmarkLine::Scope scope,
              std::vector<PodId>& wakes) BERTH_EXCLUDES(mutex_);

  std::atomic<bool> looks_ = false;  // a thread does; the next two are its own
  EarmarkLine line_;
  Instant counted_;  // when it was asked last who still waits

  mutable Mutex mutex_;
  std::vector<News> news_ BERTH_GUARDED_BY(mutex_);
  std::shared_ptr<const Earmarks> newest_ BERTH_GUARDED_BY(mutex_) = Earmarks::None();
  std::shared_ptr<const PodsInLine> ahead_ BERTH_GUARDED_BY(mutex_);
  std::shared_ptr<const Snapshot> looked_at_ BERTH_GUARDED_BY(mutex_);
  std::shared_ptr<const KeptNodes> kept_then_ BERTH_GUARDED_BY(mutex_);
  std::optional<Instant> next_ BERTH_GUARDED_BY(mutex_);
  std::optional<Instant> unasked_ BERTH_GUARDED_BY(mutex_);  // when it was time for these last
  bool is_empty_ BERTH_GUARDED_BY(mutex_) = true;            // nobody stands in line
};

}  // namespace berth
