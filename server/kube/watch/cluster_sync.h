// SPDX-License-Identifier: Apache-2.0
//
// How nodes and pods that are watched become ClusterEvents: one sink per kind of object, each
// called by its Reflector's thread alone. (watch_source.h has the kinds that are simpler.)
//
// An object that cannot be read is reported and left out, a node whose links cannot be read is
// reported and does without them; nothing else is affected. Events of one object may come twice or
// out of order: an older resourceVersion changes nothing, and a UID that was deleted does not come
// back. A list is newer than all that: the pods that it shows exist, as it shows them, and of those
// that it does not show the ones are gone that were known to be bound before it was asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/recent.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/waiting_pods.h"
#include "server/kube/watch/kubelet_refusals.h"
#include "server/kube/watch/reflector.h"
#include "server/kube/watch/watch_source.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/pod_object.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::kube {

// Straight to the state, which outlives it.
PublishNodes PublishTo(ClusterState& state);

class NodeSink final : public ObjectSink {
 public:
  // Hears of the annotations of each node, and none of one that is gone. On the reflector's thread.
  using OnHold = std::function<void(const std::string& node, const wire::NodeHold& hold)>;

  // References: they outlive the sink.
  NodeSink(PublishNodes publish, const wire::NodeRules& rules, OnUnreadable report,
           OnHold on_hold = {});

  void ListBegins() override;
  void Listed(const PaddedText& object) override;
  void ListEnds() override;
  void Changed(const PaddedText& object) override;
  void Deleted(const PaddedText& object) override;

  [[nodiscard]] std::size_t unreadable() const { return unreadable_.count(); }

 private:
  void Remove(const std::string& name);
  void Note(const wire::DecodedNode& node);

  const PublishNodes publish_;  // the decoder has validated every spec
  const wire::NodeRules& rules_;
  const OnHold on_hold_;
  UnreadableObjects unreadable_;
  std::set<std::string> known_;  // names in the state, from here
  std::set<std::string> listed_;
  std::vector<ClusterEvent> batch_;
};

class PodSink final : public ObjectSink {
 public:
  // Pods that hold something or wait for it. One watch for both: what it says of a pod comes in
  // order, its binding and its end too. A pod that ends leaves the selection, which the API server
  // reports as its deletion.
  static constexpr const char* kQuery =
      "fieldSelector=status.phase!=Succeeded,status.phase!=Failed";

  // Called once for each pod whose annotation is not believed, and again when the annotation
  // changes. On the reflector's thread; must not block.
  using OnDispute = std::function<void(const DeviceDispute&)>;

  // References: they outlive the sink. waiting: nullptr = nobody asks for pods without a node.
  // starts: hears what becomes of pods with GPUs on their nodes; nullptr: nobody does.
  PodSink(ClusterState& state, const wire::PodRules& rules, OnUnreadable report,
          OnDispute on_dispute = {}, WaitingPods* waiting = nullptr,
          KubeletRefusals* starts = nullptr);

  void ListBegins() override;
  void Listed(const PaddedText& object) override;
  void ListEnds() override;
  void Changed(const PaddedText& object) override;
  void Deleted(const PaddedText& object) override;

  [[nodiscard]] std::size_t unreadable() const { return unreadable_.count(); }

 private:
  static constexpr std::size_t kBatch = 512;
  static constexpr std::size_t kGraves = 4096;

  struct Seen {
    std::int64_t version = -1;
    std::uint64_t list = 0;  // the list that had it last
    bool bound = false;
    bool starting = false;  // it has GPUs, and does not run yet
    // If this process bound it; hundreds of thousands of others have none.
    std::unique_ptr<KubeletRefusals::Start> start;
  };

  // Adds the events of the object to the batch. A listed object is the newest state.
  void Take(const PaddedText& object, bool listed);
  void Place(wire::ObservedPod observed);
  // is_new: it had no node when it was shown before.
  void FollowStart(const wire::ObservedPod& observed, bool is_new, Seen& seen);
  void Bury(const std::string& uid);
  void Flush();
  // In a list a pod may come before another one has left its GPU: only when it has ended.
  void ReportDisputes();

  ClusterState& state_;
  const wire::PodRules& rules_;
  UnreadableObjects unreadable_;
  const OnDispute on_dispute_;
  WaitingPods* const waiting_;
  KubeletRefusals* const starts_;
  std::map<std::string, std::string> disputed_;  // what was reported, by UID
  std::uint64_t list_ = 0;
  std::vector<std::string> bound_before_;       // UIDs bound in the state when the list began
  WaitingPods::Mark waiting_before_ = 0;        // the same
  std::unordered_map<std::string, Seen> seen_;  // by UID: pods that exist
  Recent<std::string, std::monostate> dead_{kGraves};  // the last UIDs that were deleted
  std::vector<ClusterEvent> batch_;
  std::vector<std::string> off_;  // UIDs that wait no longer once the batch is applied
};

}  // namespace berth::kube
