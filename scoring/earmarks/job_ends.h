// SPDX-License-Identifier: Apache-2.0
//
// JobEnds: until when the pods of Jobs run, by the deadline of the Job (activeDeadlineSeconds of a
// batch/v1 Job, which counts from its start).
//
// The Job controller ends the pods then. But the owner of a Job may change the deadline while it
// runs: it is a word, no promise. So of each run of a Job the shortest deadline counts that was
// ever said, whatever it says now. A run begins when status.startTime is set anew, as the Job is
// resumed: its pods had to end when it was suspended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "cluster/values/pod_request.h"

namespace berth {

// A Job as the API server shows it.
struct JobDeadline {
  std::string namespace_name;
  std::string uid;
  std::optional<WallTime> started = {};  // status.startTime
  std::int64_t seconds = 0;              // 1..kMostRunSeconds; 0: it has no deadline
  bool over = false;                     // it has ended, or is suspended and has not started
  friend bool operator==(const JobDeadline&, const JobDeadline&) = default;
};

// Immutable: any thread reads it.
class JobEnds {
 public:
  // When the pod, which started then, has ended by the deadline of its Job, with its grace period.
  // Empty: its controller is no Job of its namespace, or one without a deadline.
  [[nodiscard]] std::optional<WallTime> Of(const PodRequest& pod, WallTime started) const;

 private:
  friend class JobEndTable;
  struct Run {
    std::optional<WallTime> started;  // empty: it is about to
    std::int64_t seconds = 0;
    std::uint64_t list = 0;  // the one that showed it last, or that came before it
  };
  using Runs = std::map<Digest, Run>;  // by what stands for the UID

  std::map<std::string, Runs, std::less<>> of_namespace_;  // none is empty
};

// Any thread may call any function; Put and the lists come from one. A request's Of waits for no
// copy that Newest makes.
class JobEndTable {
 public:
  static constexpr std::size_t kMost = 32'768;
  static constexpr std::size_t kMostOfNamespace = 8'192;  // of these

  // The Job is new or has changed. One that is over is forgotten. Beyond kMostOfNamespace what
  // comes is left out, or else its owner could have forgotten what a Job has said; beyond kMost the
  // namespace with the most loses one.
  void Put(const JobDeadline& job) BERTH_EXCLUDES(mutex_);
  void Remove(const JobDeadline& job) BERTH_EXCLUDES(mutex_);
  // What is not put between the two is gone.
  void ListBegins() BERTH_EXCLUDES(mutex_);
  void ListEnds() BERTH_EXCLUDES(mutex_);

  // As JobEnds, by what is known now: the pods of a Job come as soon as it does.
  [[nodiscard]] std::optional<WallTime> Of(const PodRequest& pod, WallTime started) const
      BERTH_EXCLUDES(mutex_);
  // What is known now; copied if something has changed, which takes some milliseconds at most.
  [[nodiscard]] std::shared_ptr<const JobEnds> Newest() const BERTH_EXCLUDES(mutex_, newest_mutex_);
  [[nodiscard]] std::size_t jobs() const BERTH_EXCLUDES(mutex_);

 private:
  // nullptr: it is not known.
  JobEnds::Run* Find(const std::string& namespace_name, const Digest& uid) BERTH_REQUIRES(mutex_);
  // Whether one more of the namespace may be added.
  bool MakePlaceIn(const std::string& namespace_name) BERTH_REQUIRES(mutex_);
  void Erase(const std::string& namespace_name, const Digest& uid) BERTH_REQUIRES(mutex_);

  mutable SharedMutex mutex_;
  JobEnds now_ BERTH_GUARDED_BY(mutex_);
  std::size_t jobs_ BERTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t list_ BERTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t changes_ BERTH_GUARDED_BY(mutex_) = 0;

  mutable Mutex newest_mutex_;  // before mutex_
  mutable std::shared_ptr<const JobEnds> newest_ BERTH_GUARDED_BY(newest_mutex_) =
      std::make_shared<const JobEnds>();
  mutable std::uint64_t newest_of_ BERTH_GUARDED_BY(newest_mutex_) = 0;  // changes_ then
};

}  // namespace berth
