// SPDX-License-Identifier: Apache-2.0
//
// Ports: what the Extender needs from outside. serve.cc chooses the adapters, tests bring fakes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/node/node.h"
#include "cluster/values/gang.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "scoring/reason.h"

namespace berth {

// A pod to be bound. References: valid during the call.
struct BindOrder {
  const PodRequest& pod;
  const Placement& placement;
  const NodeSpec& node;  // for which the placement was found (ClusterState::Reserve)
  Instant deadline;
  std::string_view decision;  // its id in the log
};

// What the cluster says of a pod.
struct PodTruth {
  PodRequest pod;
  std::optional<Placement> placement;                   // empty: not bound
  bool leaving = false;                                 // it was told to end
  bool lacks_devices = false;                           // PodBound::lacks_devices
  std::shared_ptr<const GivenDevices> given = nullptr;  // PodBound::given
};

// The cluster, as one pod needs it. Any thread may call it, several at a time; it may
// block.
class PodBinder {
 public:
  virtual ~PodBinder() = default;
  // Success means verified: the pod is bound to order.node. Error: kUnavailable when the cluster
  // could not be asked, so that the pod may or may not be bound; kConflict when it is bound to
  // another node or may not be bound; others as fits. Only kUnavailable leaves a doubt.
  virtual Status Bind(const BindOrder& order) = 0;
  // Error: kNotFound when there is no pod of that UID (any more), kUnavailable.
  virtual Result<PodTruth> Find(const PodId& id) = 0;
};

// What the cluster still has of a gang's pods that have ended.
struct GangPast {
  GangId gang;
  std::int64_t succeeded = 0;  // so many, of those that belong to the pods that there are now
  bool ran = false;            // one of them had GPUs on a node
};

// Any thread may call it; it blocks.
class GangHistory {
 public:
  virtual ~GangHistory() = default;
  // Of the gangs that have pods in the namespace. A gang is created anew under its name: pods count
  // that one controller made with some that have not ended, or that were made at the same time.
  // Error: kUnavailable.
  virtual Result<std::vector<GangPast>> In(const std::string& namespace_name) = 0;
};

// All ResourceClaims of a gang's member are to get devices of that node.
struct ClaimOrder {
  PodId pod;
  std::vector<std::string> claims;  // by name, in the pod's namespace
  std::string node;
};

// What a pod says of the GPUs that its claims are to get, and what the policy says of the nodes.
struct ClaimWishes {
  RequestShape shape = {};  // the pod's, which asks for no GPUs
  // A priority, 0..10, for each of the nodes that fit the pod, as if it were of the shape given:
  // the best for those that Berth would choose. Empty: all nodes are equally good.
  std::function<std::vector<std::uint8_t>(const RequestShape&)> priorities = {};
};

// Who allocates a pod's ResourceClaims before the pod has a node. Any thread may call it, several
// at a time.
class ClaimAllocator {
 public:
  virtual ~ClaimAllocator() = default;
  // The pod's filter has come: Allocate follows, maybe late, or Leave. Does not block.
  virtual void Ask(const PodId& pod, std::span<const std::string> claims) = 0;
  // Claims: by name, in the pod's namespace. Nodes: those that fit the pod, by name. True: the
  // claim is allocated now, so that the pod fits the node of its device alone and has to be asked
  // about anew. False: it is left to others, or was allocated before. Blocks, for a second at most.
  virtual bool Allocate(const PodId& pod, std::span<const std::string> claims,
                        std::span<const std::string> nodes, const ClaimWishes& wishes) = 0;
  // The pod goes on without having been asked about. Does not block.
  virtual void Leave(const PodId& pod, std::span<const std::string> claims) = 0;
  // kube-scheduler was told nodes for the pod / that none will do, on which it would give it GPUs
  // by a claim of its own making, because the pod asks for them by the name of a resource
  // (admission.h). Does not block.
  virtual void ToldByName(const PodId& pod, bool fits) = 0;
  // As Allocate, for pods that start together: all of them or none. The first is the one that the
  // filter is about, if it has claims without devices; the filter came at that time. True: all are
  // allocated now, so that each pod fits its node alone. False: none was, and what was written is
  // taken back.
  virtual bool AllocateTogether(std::span<const ClaimOrder> orders, Instant asked) = 0;
};

// Who has kube-scheduler ask again about a pod that it has put aside. Any thread may call it; it
// does not block.
class PodWaker {
 public:
  virtual ~PodWaker() = default;
  // False: it has no room for the pod now. The caller keeps the pod and comes again.
  [[nodiscard]] virtual bool Wake(const PodId& pod) = 0;
};

// Who evicts pods by the API server. Any thread may call it; it blocks, for some seconds at most.
class PodEvictor {
 public:
  virtual ~PodEvictor() = default;
  enum class Outcome {
    kEvicted,  // it is ending, or gone
    kBlocked,  // a PodDisruptionBudget does not allow it now
    kFailed,   // no right to, or this process does not lead
    kUnknown,  // no answer: it may be ending
  };
  virtual Outcome Evict(const PodId& pod) = 0;
};

// Who says on nodes that node autoscalers are to leave them alone. Any thread may call it; it does
// not block.
class NodeHolder {
 public:
  virtual ~NodeHolder() = default;
  // The nodes that say so in Berth's name, also in that of a process before this one.
  [[nodiscard]] virtual std::set<std::string> Held() const = 0;
  // Has the node say so, or no longer. It may fail: the caller looks at Held and comes again.
  virtual void Hold(const std::string& node, bool hold) = 0;
};

// Runs a job at some time, on another thread. False: it has no room for it.
using Jobs = std::function<bool(std::function<void()> job)>;

enum class Verb { kFilter, kPrioritize, kPreempt, kBind };
inline constexpr std::array<std::string_view, 4> kVerbNames = {"filter", "prioritize", "preempt",
                                                               "bind"};
constexpr std::string_view NameOf(Verb verb) { return kVerbNames[static_cast<std::size_t>(verb)]; }

// One answer that was given. Views: valid during the call only.
struct Decision {
  Verb verb = Verb::kFilter;
  const PodId* pod = nullptr;
  std::size_t candidates = 0;               // nodes asked about
  std::size_t fitting = 0;                  // of them
  Reason first_reason = Reason::kFits;      // of the first node that does not fit
  const Placement* placement = nullptr;     // bind: what was granted
  const Error* error = nullptr;             // bind: why not
  std::string_view id = {};                 // bind
  std::string_view shortage = {};           // filter: what links that node lacks (device_fit.h)
  std::optional<double> link_quality = {};  // bind: device_fit.h
  // bind: since the pod was created; empty: not known, or it failed.
  std::optional<Duration> waited = {};
};

// What became of a gang. pod: one of its members.
struct GangNews {
  enum class What {
    kPlanned,  // all that it needs have a place
    kNoRoom,   // they have none
    kBegun,    // the first of them is bound
    kAborted,  // the plan was given up before
  };
  What what = What::kPlanned;
  GangId gang;
  PodId pod;
  std::string text;           // what a person would want to know
  std::string_view why = {};  // kAborted: a constant
  Duration took{};            // kBegun: for how long the first of its binds was held
};

// A pod keeps waiting. sentence: why, and what would change that (docs/my-pod-waits.md).
struct PodWaits {
  PodId pod;
  std::string sentence;
};

// These were evicted from the node for the pod, which kube-scheduler gives its GPUs by a claim.
struct PodsEvicted {
  PodId pod;
  int priority = 0;
  std::string node;
  std::vector<PodId> victims;
};

// What Berth does so that a pod or gang has room, by moves of others, and what became of it.
struct RoomNews {
  enum class What {
    kAdvised,  // moves would help
    kBegun,    // a plan is carried out
    kEvicted,  // `moved` was
    kMoved,    // `moved`, the successor of one that was evicted, is where it was to be
    kDone,     // the pod, or the gang, is in
    kGivenUp,  // it goes no further: why
    // No nodes are kept idle for some time: why. pod: Berth's own.
    kGaveIdleUp,
  };
  What what = What::kAdvised;
  PodId pod;         // for whom: the pod, or a member of the gang; no name: for idle nodes
  PodId moved = {};  // kEvicted, kMoved
  std::string text;  // what a person would want to know
};

// Where decisions leave to: log, metrics. Any thread may call it; it must not block.
class DecisionSink {
 public:
  virtual ~DecisionSink() = default;
  virtual void Record(const Decision& decision) = 0;
  virtual void Record(const GangNews& /*news*/) {}
  virtual void Record(const PodWaits& /*news*/) {}
  virtual void Record(const PodsEvicted& /*news*/) {}
  virtual void Record(const RoomNews& /*news*/) {}
};

}  // namespace berth
