// SPDX-License-Identifier: Apache-2.0
#include "server/kube/watch/cluster_sync.h"

#include <utility>

#include "server/wire/json/object_meta.h"

namespace berth::kube {

// --- nodes

PublishNodes PublishTo(ClusterState& state) {
  return [&state](std::vector<ClusterEvent> events) {
    (void)state.Apply(std::move(events));  // the specs are valid: the decoder has checked them
  };
}

NodeSink::NodeSink(PublishNodes publish, const wire::NodeRules& rules, OnUnreadable report,
                   OnHold on_hold)
    : publish_(std::move(publish)),
      rules_(rules),
      on_hold_(std::move(on_hold)),
      unreadable_("nodes", std::move(report)) {}

void NodeSink::ListBegins() {
  unreadable_.ListBegins();
  listed_.clear();
  batch_.clear();
}

void NodeSink::Listed(const PaddedText& object) {
  auto node = wire::DecodeNode(object, rules_);
  if (!node) return unreadable_.Add(NameIn(object), node.error().message);
  Note(*node);
  listed_.insert(node->spec.name);
  batch_.emplace_back(NodeUpserted{std::move(node->spec)});
}

// A part that could not be read is reported, and the node has none of it.
void NodeSink::Note(const wire::DecodedNode& node) {
  if (on_hold_) on_hold_(node.spec.name, node.hold);
  unreadable_.Note(node.spec.name, node.problem);
}

// The names are few; all nodes of the list become one event, so that the snapshot is built once.
void NodeSink::ListEnds() {
  unreadable_.ListEnds();
  for (const std::string& name : known_) {
    if (listed_.contains(name)) continue;
    batch_.emplace_back(NodeRemoved{name});
    if (on_hold_) on_hold_(name, {});
  }
  publish_(std::exchange(batch_, {}));
  known_ = std::exchange(listed_, {});
}

void NodeSink::Changed(const PaddedText& object) {
  auto node = wire::DecodeNode(object, rules_);
  if (!node) {
    const std::string name = NameIn(object);
    unreadable_.Add(name, node.error().message);
    return Remove(name);
  }
  Note(*node);
  known_.insert(node->spec.name);
  std::vector<ClusterEvent> event;
  event.emplace_back(NodeUpserted{std::move(node->spec)});
  publish_(std::move(event));
}

void NodeSink::Deleted(const PaddedText& object) {
  const std::string name = NameIn(object);
  unreadable_.Remove(name);
  Remove(name);
}

void NodeSink::Remove(const std::string& name) {
  if (known_.erase(name) == 0) return;
  if (on_hold_) on_hold_(name, {});
  publish_({NodeRemoved{name}});
}

// --- pods

PodSink::PodSink(ClusterState& state, const wire::PodRules& rules, OnUnreadable report,
                 OnDispute on_dispute, WaitingPods* waiting, KubeletRefusals* starts)
    : state_(state),
      rules_(rules),
      unreadable_("pods", std::move(report)),
      on_dispute_(std::move(on_dispute)),
      waiting_(waiting),
      starts_(starts) {}

void PodSink::ListBegins() {
  unreadable_.ListBegins();
  ++list_;
  bound_before_ = state_.BoundUids();
  if (waiting_ != nullptr) waiting_before_ = waiting_->Here();
}

void PodSink::Listed(const PaddedText& object) {
  Take(object, true);
  if (batch_.size() >= kBatch) Flush();
}

void PodSink::ListEnds() {
  unreadable_.ListEnds();
  for (auto pod = seen_.begin(); pod != seen_.end();) {
    if (pod->second.list == list_) {
      ++pod;
      continue;
    }
    Bury(pod->first);
    pod = seen_.erase(pod);
  }
  // Also those that no watch has ever shown: bound by us, and deleted while the watch was away. A
  // pod that has lost its node was bound before the API server was restored from a backup.
  for (const std::string& uid : bound_before_) {
    const auto pod = seen_.find(uid);
    if (pod == seen_.end()) {
      Bury(uid);
    } else if (!pod->second.bound) {
      batch_.emplace_back(PodGone{uid});
    }
  }
  bound_before_ = {};
  Flush();
  if (waiting_ != nullptr) {
    waiting_->RemoveUnless([this](const std::string& uid) { return seen_.contains(uid); },
                           waiting_before_);
  }
  // Bound by us while the list was made, or after it, or not at all: the list cannot say.
  for (const std::string& uid : state_.UnshownUids()) {
    if (!seen_.contains(uid)) batch_.emplace_back(PodMissed{uid});
  }
  Flush();
  ReportDisputes();
}

void PodSink::Changed(const PaddedText& object) {
  Take(object, false);
  if (batch_.empty()) return;
  Flush();
  ReportDisputes();
}

void PodSink::Deleted(const PaddedText& object) {
  const auto meta = wire::DecodeObjectMeta(object);
  if (!meta) return unreadable_.Add("(unnamed)", meta.error().message);
  unreadable_.Remove(meta->FullName());
  const auto seen = seen_.find(meta->uid);
  if (seen != seen_.end() && seen->second.start && !meta->deleting) {
    // Ended, most probably: the object is as it was before that.
    starts_->Vanished({meta->uid, meta->namespace_name, meta->name},
                      std::move(*seen->second.start));
  }
  seen_.erase(meta->uid);
  Bury(meta->uid);
  Flush();
  ReportDisputes();
}

void PodSink::Take(const PaddedText& object, bool listed) {
  auto observed = wire::DecodeObservedPod(object, rules_);
  if (!observed) return unreadable_.Add(NameIn(object), observed.error().message);
  const PodId& id = observed->pod.id;
  if (listed) {
    dead_.Erase(id.uid);
  } else if (dead_.contains(id.uid)) {
    return;
  }
  Seen& seen = seen_[id.uid];
  seen.list = list_;
  if (const std::int64_t version = wire::VersionNumber(observed->resource_version)) {
    if (version <= seen.version && !listed) return;
    seen.version = version;
  }
  unreadable_.Note(id.full_name(), observed->problem);
  const bool was_bound = std::exchange(seen.bound, !observed->node.empty() && !observed->over);
  FollowStart(*observed, !was_bound, seen);
  Place(*std::move(observed));
}

void PodSink::FollowStart(const wire::ObservedPod& observed, bool is_new, Seen& seen) {
  if (starts_ == nullptr || !seen.bound || !observed.pod.shape.wants_gpu()) return;
  if (!observed.running) {
    seen.starting = true;
    if (!is_new) return;
    auto start = starts_->Begins(observed.pod.id.uid, observed.node);
    seen.start = start ? std::make_unique<KubeletRefusals::Start>(*std::move(start)) : nullptr;
  } else if (std::exchange(seen.starting, false)) {
    seen.start.reset();
    starts_->Runs(observed.pod, observed.node);
  }
}

void PodSink::Place(wire::ObservedPod observed) {
  const std::string& uid = observed.pod.id.uid;
  if (!observed.over && observed.node.empty()) {
    if (observed.terminating) batch_.emplace_back(PodGone{uid});
    if (waiting_ != nullptr) waiting_->Put(wire::WaitingOf(std::move(observed)));
    return;
  }
  off_.push_back(uid);
  if (waiting_ != nullptr && !observed.terminating) waiting_->Replaces(uid, observed.node);
  if (waiting_ != nullptr && observed.terminating && observed.running) {
    waiting_->Ends(observed.pod, observed.life, observed.node);
  }
  if (observed.over || observed.node.empty()) {
    batch_.emplace_back(PodGone{uid});
  } else {
    batch_.emplace_back(PodBound{std::move(observed.pod), std::move(observed.placement), true,
                                 observed.terminating, observed.lacks_devices,
                                 std::move(observed.given), std::move(observed.life)});
  }
}

void PodSink::Bury(const std::string& uid) {
  batch_.emplace_back(PodGone{uid});
  off_.push_back(uid);
  dead_.Put(uid);
}

void PodSink::ReportDisputes() {
  for (const auto& [uid, dispute] : state_.TakeDisputeChanges()) {
    if (!dispute) {
      disputed_.erase(uid);
      continue;
    }
    const auto known = disputed_.find(uid);
    const bool is_news = known == disputed_.end() || known->second != dispute->problem;
    if (is_news && on_dispute_) on_dispute_(*dispute);
    disputed_.insert_or_assign(uid, dispute->problem);
  }
}

void PodSink::Flush() {
  if (!batch_.empty()) (void)state_.Apply(batch_);  // no node in it: cannot fail
  batch_.clear();
  for (const std::string& uid : off_) {
    if (waiting_ != nullptr) waiting_->Remove(uid);
  }
  off_.clear();
}

}  // namespace berth::kube
