// SPDX-License-Identifier: Apache-2.0
//
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
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/values/pod_request.h"

namespace berth {

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

}  // namespace berth
