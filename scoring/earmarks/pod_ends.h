// SPDX-License-Identifier: Apache-2.0
//
// PodEnds: when pods end, if that is known, and when a node has room by that.
//
// Three say it. `activeDeadlineSeconds` of the pod is a promise of the kubelet: the pod has ended
// then. The pod's `berth.dev/expected-duration` and the deadline of its Job (JobEnds) are its
// owner's word: the sooner of the two ends. It counts as long as the pods of its namespace keep
// theirs: once more than one in kOverdueOf of those that run is past its word by more than
// kTolerance of it, no word of that namespace counts. Who is past its own word says nothing any
// more. Where nobody says anything, pods like it that have ended do (RunTimeTable).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"

namespace berth {

// JobEnds: until when the pods of Jobs run, by the deadline of the Job (activeDeadlineSeconds of a
// batch/v1 Job, which counts from its start).
//
// The Job controller ends the pods then. But the owner of a Job may change the deadline while it
// runs: it is a word, no promise. So of each run of a Job the shortest deadline counts that was
// ever said, whatever it says now. A run begins when status.startTime is set anew, as the Job is
// resumed: its pods had to end when it was suspended.

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

// RunTimes: how long pods run, by how long pods like them ran.
//
// Pods are alike that are of one series (PodRequest::series) in one namespace and ask for as many
// whole GPUs; where few of these have ended, those of the namespace that ask for as many. Of the
// run times of a kind the last kPerKind count. What is known of a pod is conditional on its age
// (as in LAVA, MLSys 2025): of the kind's run times those that are longer than it, so it is
// predicted anew as it runs. Its end is their kQuantile, not their mean: who waits for a node must
// not be told too early. Where the longer ones of the kind differ by more than kMostRatio
// nothing is known, nor of a pod that is older than nearly all of its kind.
//
// Tenants choose names, and end pods as they like. So a namespace has kinds of its own alone, with
// a bounded part of all, and can only spoil what is predicted of its own pods.

// Immutable: any thread reads it.
class RunTimes {
 public:
  static constexpr std::size_t kPerKind = 32;
  static constexpr std::size_t kEnough = 12;       // run times of a kind, to know anything of it
  static constexpr std::size_t kEnoughLonger = 2;  // than the pod's age
  static constexpr double kQuantile = 0.9;
  // Of the longer half of a kind's run times: of their kQuantile to their 1 - kQuantile. Of 32 that
  // are log-normal 77 % pass where sigma is .39, and .3 % where it is 1.
  static constexpr double kMostRatio = 2;

  // How long the pod runs in all; it has run for `age` until now, which is less. Empty: not known,
  // as of every pod that is of no series.
  [[nodiscard]] std::optional<Duration> Of(const PodRequest& pod, Duration age) const;
  [[nodiscard]] bool empty() const { return kinds_.empty(); }

 private:
  friend class RunTimeTable;
  struct Kind {
    std::string namespace_name;
    std::uint64_t series = 0;  // 0: of any
    int gpus = 0;              // whole ones; 0: parts of GPUs
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };
  struct KindView {
    std::string_view namespace_name;
    std::uint64_t series = 0;
    int gpus = 0;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const KindView& kind) const noexcept;
    std::size_t operator()(const Kind& kind) const noexcept {
      return (*this)(KindView{kind.namespace_name, kind.series, kind.gpus});
    }
  };
  struct Equal {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return a.series == b.series && a.gpus == b.gpus && a.namespace_name == b.namespace_name;
    }
  };
  using Sorted = std::vector<Duration>;

  std::unordered_map<Kind, std::shared_ptr<const Sorted>, Hash, Equal> kinds_;
};

// What is learned. Any thread may call any function.
class RunTimeTable {
 public:
  static constexpr std::size_t kMostKinds = 4096;
  static constexpr std::size_t kMostOfNamespace = 256;  // of these

  // The pod has ended by itself at that time, after so long. In any order, and again: of a pod one
  // run time counts. One that is of no series, or has run for no time, is left out.
  void Add(const PodRequest& pod, Duration ran, WallTime ended) BERTH_EXCLUDES(mutex_);
  // What is known now; made anew if something has been added, which takes up to a millisecond.
  [[nodiscard]] std::shared_ptr<const RunTimes> Newest() const BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t kinds() const BERTH_EXCLUDES(mutex_);

 private:
  struct Run {
    WallTime ended;
    std::uint64_t pod = 0;  // stands for its UID
    Duration ran{};
    friend auto operator<=>(const Run&, const Run&) = default;
  };
  struct Learned {
    std::vector<Run> runs;  // the newest last; at most kPerKind
    std::shared_ptr<const RunTimes::Sorted> sorted;
    std::uint64_t changed = 0;  // in the order of all changes
  };
  using Kinds = std::map<RunTimes::Kind, Learned>;

  void AddTo(RunTimes::Kind kind, const Run& run) BERTH_REQUIRES(mutex_);
  void MakePlaceIn(const std::string& namespace_name) BERTH_REQUIRES(mutex_);
  void DropOldestOf(const std::string& namespace_name) BERTH_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Kinds kinds_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, std::size_t, std::less<>> of_namespace_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t changes_ BERTH_GUARDED_BY(mutex_) = 0;
  mutable std::shared_ptr<const RunTimes> newest_ BERTH_GUARDED_BY(mutex_) =
      std::make_shared<const RunTimes>();
  mutable std::uint64_t newest_of_ BERTH_GUARDED_BY(mutex_) = 0;
};

// Any thread reads it. What it says of pods that had started kStart before does not change.
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
