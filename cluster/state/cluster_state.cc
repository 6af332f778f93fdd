// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/cluster_state.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "base/check.h"
#include "cluster/node/given_grants.h"
#include "cluster/values/alike.h"

namespace berth {
namespace {

void SortByUid(PodRecords& records) {
  std::ranges::sort(records, {}, [](const std::shared_ptr<const PodRecord>& record) {
    return std::string_view(record->pod.id.uid);
  });
}

// The same pod, with other devices by its annotation.
PodRecord WithDevices(const PodRecord& held, Placement placement, bool annotated,
                      std::shared_ptr<const Placement> said = nullptr) {
  PodRecord record = held;
  record.placement = std::move(placement);
  record.state = PodState::kBound;
  record.settle_after = {};
  record.annotated = annotated;
  record.said = std::move(said);
  return record;
}

// What of the record to keep beside the placement that is believed. `read`: what it means now.
std::shared_ptr<const Placement> SaidToKeep(const Placement& said, const Placement& read,
                                            const Placement& believed, const PodRecord* held) {
  if (held != nullptr && held->said != nullptr && *held->said == said) return held->said;
  if (believed == read && HasNamedGrants(said)) return std::make_shared<const Placement>(said);
  const bool stays = held != nullptr && believed.grants == held->placement.grants;
  return stays ? held->said : nullptr;
}

// Whether the one has all that the other one had.
bool HasDevicesOf(const PodRecord& now, const PodRecord& before) {
  return now.placement.grants == before.placement.grants &&
         now.placement.mig == before.placement.mig;
}

// An answer about a pod's devices alone says nothing of its life, and nothing is taken back.
// held: as it was on the same node; nullptr: it was not there.
PodLife LifeOf(const PodRecord* held, const PodBound& bound) {
  PodLife life = bound.life;
  if (held == nullptr || held->placement.node != bound.placement.node) return life;
  if (!life.started) life.started = held->life.started;
  if (!life.ends) life.ends = held->life.ends;
  life.comes_back |= held->life.comes_back;
  life.completes |= held->life.completes;
  life.evicted |= held->life.evicted;
  if (life.replica_set.empty()) life.replica_set = held->life.replica_set;
  return life;
}

// Whether the event changes anything: most changes of a pod concern its status. Of its gang the
// name counts: what else is known of it is its PodGroup's news.
bool IsNews(const PodRecord& held, const PodBound& bound, const Placement& placement,
            const std::shared_ptr<const Placement>& said,
            const std::shared_ptr<const GivenDevices>& given) {
  using enum Role;
  const bool same = held.state == PodState::kBound && held.placement == placement &&
                    held.said == said && held.given == given && held.leaving == bound.leaving &&
                    held.life == LifeOf(&held, bound) && held.pod.gang.id == bound.pod.gang.id &&
                    SameIn<kKind, kTurn, kLoss, kIdentity, kShown>(held.pod, bound.pod);
  return !same;
}

}  // namespace

ClusterState::ClusterState() : current_(std::make_shared<const Snapshot>()) {}

std::shared_ptr<const Snapshot> ClusterState::Current() const {
  const MutexLock lock(mutex_);
  return current_;
}

void ClusterState::OnPublish(std::function<void()> on_publish) {
  const MutexLock lock(mutex_);
  on_publish_ = std::move(on_publish);
}

Status ClusterState::Apply(std::span<const ClusterEvent> events) { return ApplyAll(events); }

Status ClusterState::Apply(std::vector<ClusterEvent>&& events) {
  return ApplyAll(std::span<ClusterEvent>(events));
}

template <class Event>
Status ClusterState::ApplyAll(std::span<Event> events) {
  for (const ClusterEvent& event : events) {
    if (const auto* upserted = std::get_if<NodeUpserted>(&event)) {
      BERTH_TRY_STATUS(Within(Validate(upserted->spec), "node"));
    }
    if (const auto* offered = std::get_if<GpusOffered>(&event); offered && offered->mig.known()) {
      BERTH_TRY_STATUS(Within(Validate(*offered->mig), "node " + offered->node));
    }
  }
  const MutexLock lock(mutex_);
  for (Event& event : events) {
    if (auto* const upserted = std::get_if<NodeUpserted>(&event)) {
      UpsertNode(std::move(upserted->spec));  // a copy, where the event is const
    } else {
      ApplyOne(event);
    }
    CloseUnwell();
    ReconsiderFreed();
  }
  Publish();
  return {};
}

void ClusterState::ApplyOne(const ClusterEvent& event) {
  if (const auto* removed = std::get_if<NodeRemoved>(&event)) {
    RemoveNode(removed->name);
  } else if (const auto* bound = std::get_if<PodBound>(&event)) {
    Show(*bound);
  } else if (const auto* missed = std::get_if<PodMissed>(&event)) {
    Miss(missed->uid);
  } else if (const auto* claimed = std::get_if<GpusClaimed>(&event)) {
    Claim(*claimed);
  } else if (const auto* offered = std::get_if<GpusOffered>(&event)) {
    Offer(*offered);
  } else if (const auto* in_slices = std::get_if<SliceGpusOffered>(&event)) {
    Offer(*in_slices);
  } else if (const auto* refused = std::get_if<GpuPodsRefused>(&event)) {
    Refuse(*refused);
  } else {
    Leave(std::get<PodGone>(event).uid);
  }
}

void ClusterState::Show(const PodBound& bound) {
  const std::string& uid = bound.pod.id.uid;
  if (unshown_.erase(uid) > 0) deadlines_.erase({Instant(), uid});
  Book(bound);
}

void ClusterState::Book(const PodBound& bound) {
  const std::string& node = bound.placement.node;
  const NodeSpec* const spec = SpecOf(node);
  const std::shared_ptr<const PodRecord> held = Find(bound.pod.id.uid);
  const bool stays = held != nullptr && held->placement.node == node;
  const auto given = Strongest(stays ? held->given : nullptr, bound.given);
  const bool by_claims = spec != nullptr && !spec->by_claims.empty() &&
                         std::holds_alternative<WholeGpus>(bound.pod.shape.gpus);
  if (given != nullptr && !by_claims && BookGiven(bound, given)) return;
  const Placement read = WithIndices(bound.placement, spec);
  Placement placement = bound.devices_annotated && !by_claims
                            ? disputes_.Believe(bound, held.get(), held_.On(node), spec)
                            : read;
  if (by_claims) {
    // Whatever is written on the pod: what was foreseen counts until its claim is seen.
    if (bound.devices_annotated) {
      placement.grants = stays ? held->placement.grants : std::vector<DeviceGrant>();
    }
    placement = WithClaim(std::move(placement), bound.pod);
  }
  const auto said = SaidToKeep(bound.placement, read, placement, held.get());
  if (held != nullptr && !IsNews(*held, bound, placement, said, given)) return;
  PodRecord record = {bound.pod, placement, PodState::kBound, {}, bound.devices_annotated};
  record.leaving = bound.leaving;
  record.life = LifeOf(held.get(), bound);
  record.said = said;
  record.given = given;
  Keep(std::move(record));
}

bool ClusterState::BookGiven(const PodBound& bound,
                             const std::shared_ptr<const GivenDevices>& given) {
  const NodeSpec* const spec = SpecOf(bound.placement.node);
  const std::shared_ptr<const PodRecord> held = Find(bound.pod.id.uid);
  const bool stays = held != nullptr && held->placement.node == bound.placement.node;
  const bool was_given = stays && held->planned != nullptr;
  Placement placement = WithIndices(bound.placement, spec);
  const PodDevices has = stays ? DevicesOf(held->placement) : PodDevices();
  PodDevices planned = was_given ? *held->planned : (has.empty() ? DevicesOf(placement) : has);
  std::optional<PodDevices> devices;
  if (spec != nullptr) devices = DevicesGiven(*given, bound.pod.shape, planned, *spec);
  // The node has lost its GPUs for a moment, or what is said now makes no sense there.
  if (!devices && !was_given) return false;
  disputes_.Forget(bound.pod.id.uid);
  const auto& counts = devices || !was_given ? given : held->given;
  SetDevices(devices ? *std::move(devices) : has, placement);
  if (was_given && !IsNews(*held, bound, placement, nullptr, counts)) return true;
  PodRecord record = {bound.pod, std::move(placement), PodState::kBound, {}};
  record.annotated = bound.devices_annotated;
  record.leaving = bound.leaving;
  record.life = LifeOf(held.get(), bound);
  record.given = counts;
  record.planned = std::make_shared<const PodDevices>(std::move(planned));
  Keep(std::move(record));
  return true;
}

void ClusterState::Reconsider(const std::string& uid) {
  const std::shared_ptr<const PodRecord> held = Find(uid);
  if (held == nullptr) return;
  const std::string& node = held->placement.node;
  const Placement said = disputes_.SaidOf(uid);
  if (auto placement = disputes_.Reconsider(uid, *held, held_.On(node), SpecOf(node))) {
    const auto kept = SaidToKeep(said, *placement, *placement, held.get());
    Keep(WithDevices(*held, *std::move(placement), true, kept));
  }
}

// One of them may leave devices in its turn, for another one; each changes twice at most.
void ClusterState::ReconsiderFreed() {
  while (!freed_.empty()) {
    const std::shared_ptr<const PodRecord> freed = std::move(freed_.back());
    freed_.pop_back();
    const Placement& left = freed->placement;
    std::string uid;
    while (!disputes_.IsHeldAgain(left, held_.On(left.node))) {
      const auto next = disputes_.NextBeside(left, uid);
      if (!next) break;
      uid = *next;
      Reconsider(uid);
    }
  }
}

void ClusterState::FindNamedGpus(const NodeSpec& spec) {
  for (const auto& held : PodRecords(PodsOn(spec.name))) {
    if (held->said == nullptr) continue;
    PodBound bound{held->pod, *held->said, held->annotated, held->leaving};
    bound.life = held->life;
    Book(bound);
  }
}

Placement ClusterState::WithClaim(Placement placement, const PodRequest& pod) const {
  const NodeSpec* const spec = SpecOf(placement.node);
  const Node::Claims claims = claims_.HeldOn(placement.node);
  if (spec == nullptr || claims == nullptr) return placement;
  std::vector<DeviceGrant> grants = GrantsByClaim(*spec, *claims, pod);
  if (!grants.empty()) placement.grants = std::move(grants);
  return placement;
}

void ClusterState::FindClaimedGpus(const std::string& node) {
  const NodeSpec* const spec = SpecOf(node);
  if (spec == nullptr || spec->by_claims.empty()) return;
  for (const auto& held : PodRecords(PodsOn(node))) {
    disputes_.Forget(held->pod.id.uid);  // nothing is written on pods there
    Placement placement = WithClaim(held->placement, held->pod);
    if (placement.grants == held->placement.grants) continue;
    PodRecord record = *held;
    record.placement = std::move(placement);
    Keep(std::move(record));
  }
}

void ClusterState::FindGivenGpus(const NodeSpec& spec) {
  for (const auto& held : PodRecords(PodsOn(spec.name))) {
    if (held->given == nullptr) continue;
    PodBound bound{held->pod, held->placement, held->annotated, held->leaving};
    bound.life = held->life;
    if (held->planned) SetDevices(*held->planned, bound.placement);
    (void)BookGiven(bound, held->given);
  }
}

void ClusterState::DisputeUnknownDevices(const NodeSpec& spec) {
  for (const auto& held : PodRecords(PodsOn(spec.name))) {
    if (held->planned) continue;
    if (auto placement = disputes_.DisputeUnknown(*held, spec)) {
      Keep(WithDevices(*held, *std::move(placement), false));
    }
  }
}

DeviceDisputes::SpecOf ClusterState::Specs() const {
  return [specs = &specs_](std::string_view node) -> const NodeSpec* {
    const auto spec = specs->find(node);
    return spec == specs->end() ? nullptr : spec->second.get();
  };
}

std::vector<DeviceDispute> ClusterState::Disputes() const {
  const MutexLock lock(mutex_);
  return disputes_.List(Specs());
}

std::size_t ClusterState::DisputeCount() const {
  const MutexLock lock(mutex_);
  return disputes_.Count(Specs());
}

std::vector<DisputeChange> ClusterState::TakeDisputeChanges() {
  const MutexLock lock(mutex_);
  return disputes_.TakeChanges(Specs());
}

std::uint64_t ClusterState::DisputeChecks() const {
  const MutexLock lock(mutex_);
  return disputes_.checks();
}

void ClusterState::Leave(std::string_view uid) {
  const std::shared_ptr<const PodRecord> held = Find(uid);
  if (held != nullptr && held->state == PodState::kBound && !held->placement.grants.empty()) {
    ++departed_;
  }
  Erase(uid);
  disputes_.Forget(uid);
}

// A reservation belongs to its bind, which finds out its outcome: the doubt is for later.
void ClusterState::Miss(const std::string& uid) {
  const auto unshown = unshown_.find(uid);
  if (unshown == unshown_.end()) return;
  unshown->second = {++doubts_, true};
  if (Find(uid)->state == PodState::kBound) deadlines_.emplace(Instant(), uid);
}

template <class T>
void ClusterState::Offer(const T& offered) {
  const NodeSpec* const spec = SpecOf(offered.node);
  if (!claims_.Put(offered) || spec == nullptr) return;
  if constexpr (std::is_same_v<T, SliceGpusOffered>) unwell_.ForgetClaimed(offered.node);
  UpsertNode(unwell_.SaidOf(*spec));
}

void ClusterState::Refuse(const GpuPodsRefused& refused) {
  const NodeSpec* const spec = SpecOf(refused.node);
  if (spec == nullptr) return;
  if (refused.refused || refused.asks != nullptr) {
    refusing_.insert_or_assign(refused.node, refused);
  } else {
    refusing_.erase(refused.node);
  }
  UpsertNode(unwell_.SaidOf(*spec));
}

void ClusterState::UpsertNode(NodeSpec said) {
  NodeSpec spec = claims_.WithOffers(std::move(said));
  const auto refusing = refusing_.find(spec.name);
  spec.refuses_gpu_pods = refusing != refusing_.end() && refusing->second.refused;
  spec.refused_asks = refusing == refusing_.end() ? nullptr : refusing->second.asks;
  const auto known = specs_.find(spec.name);
  if (known == specs_.end()) HearPodsOn(spec.name);
  unwell_.Close(spec, PodsOn(spec.name), claims_.HeldOn(spec.name));
  if (known != specs_.end() && *known->second == spec) return;  // a heartbeat
  auto shared = std::make_shared<const NodeSpec>(std::move(spec));
  const bool is_new = known == specs_.end();
  specs_.insert_or_assign(shared->name, shared);
  held_.Recount(shared->name, PodsOn(shared->name), shared.get());
  disputes_.NodeChanges(shared->name);
  if (is_new || node_set_changed_) {
    node_set_changed_ = true;  // the snapshot is rebuilt whole when it is published
  } else {
    ReplaceNode(shared);
  }
  FindNamedGpus(*shared);
  FindGivenGpus(*shared);
  FindClaimedGpus(shared->name);
  if (is_new) DisputeUnknownDevices(*shared);
  for (const std::string& uid : disputes_.OpenOn(shared->name)) Reconsider(uid);
}

void ClusterState::RemoveNode(const std::string& name) {
  claims_.Forget(name);
  refusing_.erase(name);  // another machine may come under its name
  unwell_.Forget(name);
  if (specs_.erase(name) == 0) return;
  node_set_changed_ = true;
  held_.Recount(name, PodsOn(name), nullptr);
  disputes_.NodeChanges(name);
}

void ClusterState::Claim(const GpusClaimed& claimed) {
  if (!claims_.Put(claimed)) return;
  const auto node = specs_.find(claimed.node);
  if (node == specs_.end()) return;
  if (!node_set_changed_) ReplaceNode(node->second);
  FindClaimedGpus(claimed.node);
  if (unwell_.Knows(claimed.node)) health_changed_.insert(claimed.node);
}

void ClusterState::ReplaceNode(const std::shared_ptr<const NodeSpec>& spec) {
  const NodeIndex index = next_.names().Find(spec->name);
  BERTH_CHECK(index != kNoNode);
  next_ = next_.With(index, BuildNode(spec));
}

std::shared_ptr<const Node> ClusterState::BuildNode(
    const std::shared_ptr<const NodeSpec>& spec) const {
  return std::make_shared<const Node>(spec, PodsOn(spec->name), claims_.HeldOn(spec->name));
}

Result<std::shared_ptr<const Node>> ClusterState::Reserve(const PodRequest& pod,
                                                          const Placement& placement,
                                                          Instant settle_after) {
  const MutexLock lock(mutex_);
  const NodeIndex index = next_.names().Find(placement.node);
  if (index == kNoNode) {
    return Fail(Errc::kNotFound, "node " + placement.node + " is not known");
  }
  const std::shared_ptr<const PodRecord> held = Find(pod.id.uid);
  if (held != nullptr && held->state == PodState::kBound) {
    return Fail(Errc::kConflict, "pod is already bound to node " + held->placement.node);
  }
  std::shared_ptr<const Node> node = next_.shared(index);
  if (held != nullptr && held->placement.node == placement.node) {
    node = std::make_shared<const Node>(
        node->Without([&held](const PodRecord& other) { return &other == held.get(); }));
  }
  BERTH_TRY_STATUS(Within(node->CanTake(placement, pod), "node " + placement.node));
  Keep({pod, WithClaim(placement, pod), PodState::kReserved, settle_after});
  unshown_[pod.id.uid] = {++doubts_, false};
  Publish();
  return node;
}

Status ClusterState::Plan(std::span<const PodPlacement> pods) {
  const MutexLock lock(mutex_);
  Transaction checked(std::make_shared<const Snapshot>(next_));
  for (const PodPlacement& planned : pods) {
    const std::shared_ptr<const PodRecord> held = Find(planned.pod.id.uid);
    if (held == nullptr) continue;
    if (held->state != PodState::kPlanned) {
      return Fail(Errc::kConflict, "pod " + planned.pod.id.full_name() +
                                       " is being bound to node " + held->placement.node +
                                       " already");
    }
    const NodeIndex index = next_.names().Find(held->placement.node);
    if (index != kNoNode) checked.Take(planned.pod.id.uid, index);
  }
  for (const PodPlacement& planned : pods) {
    BERTH_TRY_STATUS(checked.Put(planned.pod, planned.placement));
  }
  for (const PodPlacement& planned : pods) {
    Keep({planned.pod, planned.placement, PodState::kPlanned, {}});
  }
  Publish();
  return {};
}

Status ClusterState::HandOver(std::string_view uid, const PodRequest& pod) {
  const MutexLock lock(mutex_);
  const std::shared_ptr<const PodRecord> held = Find(uid);
  if (held == nullptr || held->state != PodState::kPlanned) {
    return Fail(Errc::kNotFound, "nothing is planned for pod " + std::string(uid));
  }
  if (Find(pod.id.uid) != nullptr) {
    return Fail(Errc::kConflict, "pod " + pod.id.full_name() + " has a place already");
  }
  const Placement placement = held->placement;
  Erase(uid);
  Keep({pod, placement, PodState::kPlanned, {}});
  Publish();
  return {};
}

std::size_t ClusterState::Unplan(std::span<const std::string> uids) {
  const MutexLock lock(mutex_);
  std::size_t dropped = 0;
  for (const std::string& uid : uids) {
    const std::shared_ptr<const PodRecord> held = Find(uid);
    if (held == nullptr || held->state != PodState::kPlanned) continue;
    Erase(uid);
    ++dropped;
  }
  if (dropped > 0) Publish();
  return dropped;
}

Status ClusterState::Confirm(std::string_view uid) {
  const MutexLock lock(mutex_);
  const std::shared_ptr<const PodRecord> held = Find(uid);
  if (held == nullptr || held->state == PodState::kPlanned) {
    return Fail(Errc::kNotFound, "no reservation for pod " + std::string(uid));
  }
  if (held->state == PodState::kBound) return {};
  Keep({held->pod, held->placement, PodState::kBound, {}});
  if (unshown_[held->pod.id.uid].missed) deadlines_.emplace(Instant(), held->pod.id.uid);
  Publish();
  return {};
}

bool ClusterState::Forget(std::string_view uid) {
  const MutexLock lock(mutex_);
  const std::shared_ptr<const PodRecord> held = Find(uid);
  if (held == nullptr || held->state != PodState::kReserved) return false;
  Erase(uid);
  Publish();
  return true;
}

std::vector<ClusterState::Doubt> ClusterState::Overdue(Instant now) const {
  const MutexLock lock(mutex_);
  std::vector<Doubt> overdue;
  for (const auto& [deadline, uid] : deadlines_) {
    if (deadline > now) break;
    overdue.push_back({(*pods_.find(uid))->pod.id, unshown_.find(uid)->second.number});
  }
  return overdue;
}

std::optional<ClusterState::Doubt> ClusterState::DoubtAbout(std::string_view uid) const {
  const MutexLock lock(mutex_);
  const std::shared_ptr<const PodRecord> held = Find(uid);
  if (held == nullptr) return std::nullopt;
  const auto unshown = unshown_.find(held->pod.id.uid);
  if (unshown == unshown_.end()) return std::nullopt;
  if (held->state == PodState::kBound && !unshown->second.missed) return std::nullopt;
  return Doubt{held->pod.id, unshown->second.number};
}

bool ClusterState::Settle(const Doubt& doubt, const std::optional<PodBound>& truth) {
  const MutexLock lock(mutex_);
  const std::string& uid = doubt.pod.uid;
  const auto unshown = unshown_.find(uid);
  if (unshown == unshown_.end() || unshown->second.number != doubt.number) return false;
  if (truth) {
    Show(*truth);
    unshown_[uid] = {++doubts_, false};  // by an answer, and not by a list or a watch
  } else {
    Leave(uid);
  }
  Publish();
  return true;
}

std::optional<PodRecord> ClusterState::FindPod(std::string_view uid) const {
  const MutexLock lock(mutex_);
  const std::shared_ptr<const PodRecord> held = Find(uid);
  if (held == nullptr) return std::nullopt;
  return *held;
}

bool ClusterState::IsBoundFromHere(std::string_view uid, std::string_view node) const {
  const MutexLock lock(mutex_);
  const std::shared_ptr<const PodRecord> held = Find(uid);
  return held != nullptr && held->placement.node == node && unshown_.contains(held->pod.id.uid);
}

std::size_t ClusterState::GangSize(const GangId& gang) const {
  const MutexLock lock(mutex_);
  return gangs_.Count(gang);
}

ClusterState::GangContents ClusterState::GangPods(const GangId& gang) const {
  const MutexLock lock(mutex_);
  GangContents contents{current_, {}};
  for (const std::string& node : gangs_.NodesOf(gang)) {
    for (const auto& pod : PodsOn(node)) {
      if (pod->pod.gang.id == gang) contents.pods.push_back(pod);
    }
  }
  return contents;
}

void ClusterState::Regroup(std::span<const PodRequest> pods) {
  const MutexLock lock(mutex_);
  for (const PodRequest& pod : pods) {
    const std::shared_ptr<const PodRecord> held = Find(pod.id.uid);
    if (held == nullptr) continue;
    PodRecord record = *held;
    record.pod.gang = pod.gang;
    record.pod.domain = pod.domain;
    Keep(std::move(record));
  }
  Publish();
}

std::vector<std::string> ClusterState::GangNodes(const GangId& gang) const {
  const MutexLock lock(mutex_);
  return gangs_.NodesOf(gang);
}

std::vector<std::string> ClusterState::BoundUids() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> uids;
  uids.reserve(pods_.size());
  for (const auto& record : pods_) {
    if (record->state == PodState::kBound) uids.push_back(record->pod.id.uid);
  }
  return uids;
}

std::vector<std::string> ClusterState::UnshownUids() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> uids;
  for (const auto& [uid, unshown] : unshown_) uids.push_back(uid);
  return uids;
}

PodRecords ClusterState::PodsOnUnknownNodes() const {
  PodRecords lost;
  {
    const MutexLock lock(mutex_);
    for (const auto& [node, pods] : pods_by_node_) {
      if (SpecOf(node) == nullptr) lost.insert(lost.end(), pods.begin(), pods.end());
    }
  }
  SortByUid(lost);
  return lost;
}

ClusterState::Contents ClusterState::Everything() const {
  Contents contents;
  PodRecords records;
  {
    // Only pointers are copied: decisions wait for this lock.
    const MutexLock lock(mutex_);
    contents.snapshot = current_;
    records.assign(pods_.begin(), pods_.end());
  }
  SortByUid(records);
  contents.pods.reserve(records.size());
  for (const auto& record : records) contents.pods.push_back(*record);
  return contents;
}

std::shared_ptr<const PodRecord> ClusterState::Find(std::string_view uid) const {
  const auto held = pods_.find(uid);
  return held == pods_.end() ? nullptr : *held;
}

const PodRecords& ClusterState::PodsOn(const std::string& node) const {
  const auto pods = pods_by_node_.find(node);
  return pods == pods_by_node_.end() ? no_pods_ : pods->second;
}

const NodeSpec* ClusterState::SpecOf(std::string_view node) const {
  const auto spec = specs_.find(node);
  return spec == specs_.end() ? nullptr : spec->second.get();
}

void ClusterState::Keep(PodRecord kept) {
  // It has its node: where it may go matters only if it may be moved.
  kept.pod.constraints =
      kept.pod.mobility == Mobility::kMoves ? constraints_.Share(kept.pod.constraints) : nullptr;
  const auto record = std::make_shared<const PodRecord>(std::move(kept));
  const std::string& uid = record->pod.id.uid;
  const std::string& node = record->placement.node;
  // On its present node it is replaced in one step.
  const std::shared_ptr<const PodRecord> held = Find(uid);
  if (held != nullptr && held->placement.node != node) {
    Erase(uid);
  } else if (held != nullptr) {
    Unlist(*held);
    if (!HasDevicesOf(*record, *held)) freed_.push_back(held);
  }
  const bool stays = held != nullptr && held->placement.node == node;
  HearHealth(node, stays ? held->given.get() : nullptr, record->given.get());
  if (record->state == PodState::kReserved) deadlines_.emplace(record->settle_after, uid);
  gangs_.Add(record->pod.gang.id, node);
  PodRecords& pods = pods_by_node_[node];
  ReserveOneMore(pods);
  pods.insert(PositionOf(pods, uid), record);
  pods_.insert(record);
  held_.Add(*record, SpecOf(node));
  ChangeNode(node, [&record](Node& changed) { changed.Put(record); });
}

void ClusterState::Unlist(const PodRecord& record) {
  const std::string& uid = record.pod.id.uid;
  if (record.state == PodState::kReserved) deadlines_.erase({record.settle_after, uid});
  if (record.state == PodState::kBound) deadlines_.erase({Instant(), uid});
  gangs_.Remove(record.pod.gang.id, record.placement.node);
  const auto pods = pods_by_node_.find(record.placement.node);
  pods->second.erase(PositionOf(pods->second, uid));
  if (pods->second.empty()) pods_by_node_.erase(pods);
  held_.Remove(record, SpecOf(record.placement.node));
  pods_.erase(pods_.find(uid));
}

void ClusterState::Erase(std::string_view uid) {
  const std::shared_ptr<const PodRecord> held = Find(uid);
  if (held == nullptr) return;
  Unlist(*held);
  HearHealth(held->placement.node, held->given.get(), nullptr);
  unshown_.erase(held->pod.id.uid);
  ChangeNode(held->placement.node, [&held](Node& changed) { changed.Remove(held->pod.id.uid); });
  freed_.push_back(held);
}

template <class Change>
void ClusterState::ChangeNode(const std::string& name, Change change) {
  if (node_set_changed_) return;  // everything is rebuilt when published
  const NodeIndex index = next_.names().Find(name);
  if (index == kNoNode || ++changes_[name] > 1) return;
  auto node = std::make_shared<Node>(next_.node(index));
  change(*node);
  next_ = next_.With(index, std::move(node));
}

void ClusterState::RebuildSnapshot() {
  std::vector<std::shared_ptr<const Node>> nodes;
  nodes.reserve(specs_.size());
  for (const auto& [name, spec] : specs_) nodes.push_back(BuildNode(spec));
  next_ = Snapshot(nodes);
  node_set_changed_ = false;
}

void ClusterState::HearHealth(const std::string& node, const GivenDevices* before,
                              const GivenDevices* now) {
  if (before == now) return;
  if (unwell_.Hear(node, before, now, SpecOf(node))) health_changed_.insert(node);
}

// Pods may be known before their node.
void ClusterState::HearPodsOn(const std::string& node) {
  for (const auto& pod : PodsOn(node)) unwell_.Hear(node, nullptr, pod->given.get(), nullptr);
}

void ClusterState::CloseUnwell() {
  for (const std::string& node : std::exchange(health_changed_, {})) {
    if (const NodeSpec* const spec = SpecOf(node)) UpsertNode(unwell_.SaidOf(*spec));
  }
}

void ClusterState::Publish() {
  CloseUnwell();
  ReconsiderFreed();
  for (const auto& [name, changes] : changes_) {
    const auto spec = specs_.find(name);
    if (changes > 1 && spec != specs_.end() && !node_set_changed_) ReplaceNode(spec->second);
  }
  changes_.clear();
  if (node_set_changed_) RebuildSnapshot();
  if (next_.IsSame(*current_)) return;
  current_ = std::make_shared<const Snapshot>(next_, departed_);
  if (on_publish_) on_publish_();
}

}  // namespace berth
