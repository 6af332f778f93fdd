// SPDX-License-Identifier: Apache-2.0
//
// What a pod says that it needs of its GPUs, beside how many or how much of them:
//
//   berth.dev/isolation: hardware | memory | none     (RequestShape::isolation)
//   berth.dev/min-gpu-memory-gib: "24"                with whole GPUs (nvidia.com/gpu): memory of
//                                                     each, or of the part that stands for one
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "cluster/values/node_constraints.h"
#include "cluster/values/pod_request.h"
#include "config/config.h"
#include "server/wire/pod/pod_parts.h"

namespace berth::wire {

[[nodiscard]] bool IsGpuNeedKey(std::string_view key);

// Reads one of the annotations. Error: kInvalidArgument "want ..., got TEXT".
Status ReadGpuNeed(std::string_view key, std::string_view value, RequestShape& shape);

// Whether the needs go with what the pod asks for. Error: kInvalidArgument naming the annotation.
Status CheckGpuNeeds(const RequestShape& shape);

// What a pod with GPUs needs of its node's driver and of the GPUs (VersionNeeds):
//
//   berth.dev/min-driver: "550.54.15"
//   berth.dev/min-cuda: "12.4"                  what the driver runs at least
//   berth.dev/min-compute-capability: "9.0"

[[nodiscard]] bool IsVersionKey(std::string_view key);

// Reads the annotations into the constraints. Error: kInvalidArgument "annotation KEY: want ...".
Status ReadVersionNeeds(PodParts& parts, PodRequest&);

// What a pod is one run of (PodRequest::series): the kind and the name of its controller, or its
// own name where it has none, without what each run has anew. nightly-28374650 of a CronJob,
// train-x7k2p of a template and sweep-3 are runs of nightly, train and sweep.

// The name without its last parts, joined by "-", "." or "_", that are numbers or look drawn: five
// characters out of those that Kubernetes draws from, or five and more with digits in several
// places. Nor has it a number at its end. "": nothing is left.
std::string_view StemOf(std::string_view name);

// 0: it does not end with its work.
std::uint64_t SeriesOf(const PodParts& parts);

// How long a pod runs, by its own word: the annotation berth.dev/expected-duration.
inline constexpr std::string_view kExpectedDurationKey = "berth.dev/expected-duration";

// "2h30m", "45m", "3d": whole numbers of d, h, m and s, each at most once and in this order; from a
// second to 365 days. In seconds. Error: kInvalidArgument naming the annotation.
Result<std::int64_t> ReadExpectedDuration(std::string_view text);

// How a pod spreads (RequestShape::spread), and which pods are of its workload:
//
//   berth.dev/spread: card | node
//   berth.dev/spread-by: LABEL     the pods of its namespace with the value that it has itself of
//                                  that label; without it those of its controller, and for a pod
//                                  that has none those with the same labels

[[nodiscard]] bool IsSpreadKey(std::string_view key);

// Reads the annotations into the shape. Error: kInvalidArgument "annotation KEY: want ...".
Status ReadSpread(const PodParts& parts, RequestShape& shape);

// Makes the pod spread by its controller, as those do who ask in other words.
void SpreadByController(const PodParts& parts, Spread spread, RequestShape& shape);

// Beside which pods of its namespace a pod's GPUs are to be (RequestShape::neighbours):
//
//   berth.dev/near: KEY=VALUE, KEY!=VALUE, KEY, !KEY     all of these hold for their labels
//   berth.dev/far: the same
[[nodiscard]] bool IsNeighbourKey(std::string_view key);

// Reads the annotations into the shape; of a pod without GPUs they say nothing. Error:
// kInvalidArgument "annotation KEY: want ...".
Status ReadNeighbours(const PodParts& parts, RequestShape& shape);

// WorkloadClasses: which of the configured classes a pod is of, and what it wants for that.
//
//   berth.dev/workload-class: NAME     whatever it matches
//   berth.dev/prefer: TRAIT, TRAIT     with the default weight, whatever its class says of them
//
// Else the first class that it matches (config.h, WorkloadClass). Only for pods with GPUs. Where
// the configuration has no classes the first says nothing. Immutable: any thread may ask.

// What a class says of nodes.
[[nodiscard]] NodeWishes WishesOf(const WorkloadClass& workload);

[[nodiscard]] bool IsClassKey(std::string_view key);

class WorkloadClasses {
 public:
  WorkloadClasses() = default;
  // Requires: Validate(config).
  explicit WorkloadClasses(const Config& config);

  // Sets the classes, the wishes and, where the pod does not say it itself, the spread of the
  // request. Error: kInvalidArgument "annotation KEY: want one of ...".
  Status Apply(const PodParts& parts, PodRequest& request) const;

 private:
  Status Choose(const PodParts& parts, PodRequest& request) const;
  Status Prefer(const std::string& said, NodeWishes& nodes) const;
  struct Class {
    std::string name;
    std::vector<std::string> namespaces;
    LabelSelector labels;
    std::vector<std::string> priority_classes;
    NodeWishes wishes;
    Spread spread = Spread::kNone;

    [[nodiscard]] bool Matches(const PodParts& parts) const;
  };

  std::vector<Class> classes_;
  std::vector<std::string> traits_;  // of the configuration
};

// The classes in use, which a running service may take over anew. Any thread may call it.
class CurrentClasses {
 public:
  explicit CurrentClasses(WorkloadClasses classes) { Use(std::move(classes)); }
  void Use(WorkloadClasses classes) BERTH_EXCLUDES(mutex_) {
    auto next = std::make_shared<const WorkloadClasses>(std::move(classes));
    const MutexLock lock(mutex_);
    std::swap(now_, next);  // the old ones are freed after the lock
  }
  [[nodiscard]] std::shared_ptr<const WorkloadClasses> Now() const BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return now_;
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const WorkloadClasses> now_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::wire
