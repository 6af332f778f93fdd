// SPDX-License-Identifier: Apache-2.0
//
// PodEnds: when pods end, if that is known, and when a node has room by that.
//
// Three say it. `activeDeadlineSeconds` of the pod is a promise of the kubelet: the pod has ended
// then. The pod's `berth.dev/expected-duration` and the deadline of its Job (job_ends.h) are its
// owner's word: the sooner of the two ends. It counts as long as the pods of its namespace keep
// theirs: once more than one in kOverdueOf of those that run is past its word by more than
// kTolerance of it, no word of that namespace counts. Who is past its own word says nothing any
// more. Where nobody says anything, pods like it that have ended do (run_times.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"
#include "scoring/earmarks/job_ends.h"
#include "scoring/earmarks/run_times.h"

namespace berth {

// Any thread reads it. What it says of pods that had started before does not change.
class PodEnds {
 public:
  static constexpr std::size_t kOverdueOf = 10;
  static constexpr double kTolerance = 0.1;
  // From the decision until the kubelet has seen the pod, at least.
  static constexpr Duration kStart = std::chrono::seconds(10);

  // Nothing is known.
  PodEnds() = default;
  // learned: nullptr: nothing is. jobs: outlives the object; nullptr: nobody knows Jobs.
  PodEnds(const Snapshot& snapshot, WallTime now, std::shared_ptr<const RunTimes> learned = nullptr,
          const JobEndTable* jobs = nullptr);

  // Whether of any pod of a node more is known than that it leaves.
  [[nodiscard]] bool knows() const { return knows_; }
  [[nodiscard]] WallTime now() const { return now_; }
  // When the pod of a node has ended; never before now(). Empty: that is not known.
  [[nodiscard]] std::optional<WallTime> Of(const PodRecord& held) const;
  // By how much it is past the end that it, its Job or deadline says, which Of() moves to now().
  struct Overrun {
    Duration past;
    Duration word{};  // how long it was to run, by its owner's word; 0: that is not it
  };
  // Empty: it is not.
  [[nodiscard]] std::optional<Overrun> OverrunOf(const PodRecord& held) const;
  // Whether that is known from pods like it alone.
  [[nodiscard]] bool IsLearned(const PodRecord& held) const;
  // When the pod has ended that is placed now; by what is known of its Job at the time of the call.
  [[nodiscard]] std::optional<WallTime> OfNew(const PodRequest& pod) const;
  // Whether the word of the pod's namespace counts.
  [[nodiscard]] bool Believes(const PodRequest& pod) const;

 private:
  // When a pod that started then has ended by its word; of_job: by its Job's.
  [[nodiscard]] static std::optional<WallTime> WordOf(const PodRequest& pod, WallTime started,
                                                      std::optional<WallTime> of_job);
  [[nodiscard]] std::optional<WallTime> WordOf(const PodRecord& held) const;
  [[nodiscard]] bool IsPast(WallTime word, WallTime started) const;
  // It may have passed.
  [[nodiscard]] std::optional<WallTime> Said(const PodRecord& held) const;
  [[nodiscard]] std::optional<WallTime> Learned(const PodRequest& pod, WallTime started) const;

  WallTime now_{};
  bool knows_ = false;
  // Namespaces whose word does not count; nullptr: there are none.
  std::shared_ptr<const std::set<std::string, std::less<>>> unbelieved_ = nullptr;
  std::shared_ptr<const RunTimes> learned_ = nullptr;
  std::shared_ptr<const JobEnds> jobs_ = nullptr;  // as they were at first
  const JobEndTable* jobs_now_ = nullptr;
};

struct LaterRoom {
  WallTime at;
  Duration idle{};  // so long the GPUs that it takes are free before, all together
};
// When pods of the node have ended so that the shape, which asks for whole GPUs or none, has the
// GPUs, CPU and memory that it asks for, if nobody else comes. At the earliest: links and the like
// are not looked at. Empty: not known, or never.
std::optional<LaterRoom> RoomAt(const Node& node, const RequestShape& shape, const PodEnds& ends);

}  // namespace berth
