// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/waiting_pods.h"

#include <algorithm>
#include <unordered_set>

#include "base/random.h"
#include "base/text.h"
#include "cluster/values/alike.h"
#include "cluster/values/held_bytes.h"

namespace berth {
namespace {

constexpr std::size_t kPerEntry = 256;  // what keeping a pod takes beside its request
constexpr std::string_view kOutlined =
    "the pod is among the largest waiting pods, and Berth has no memory left for these";

std::size_t BytesOf(const PodRequest& pod) {
  return kPerEntry + pod.id.uid.size() + HeldBytes(pod);
}

std::shared_ptr<const PodRequest> Outlined(const PodRequest& pod) {
  return std::make_shared<const PodRequest>(
      OutlineOf(pod, pod.refusal.empty() ? kOutlined : std::string_view(pod.refusal)));
}

// What is at fault with a pod may be what it asks for.
bool IsKept(const PodRequest& pod) {
  return pod.shape.wants_gpu() || !pod.gang.empty() || !pod.refusal.empty();
}

// Most changes of a pod that waits are why it still does: they are no news to its gang.
bool SayTheSame(const WaitingPod& a, const WaitingPod& b) {
  if (a.gated() != b.gated() || (a.pod == nullptr) != (b.pod == nullptr)) return false;
  if (a.pod == nullptr) return true;
  const PodRequest& x = *a.pod;
  const PodRequest& y = *b.pod;
  return SamePodKind(x, y) && x.gang == y.gang && x.scheduler == y.scheduler &&
         x.refusal == y.refusal && x.domain == y.domain && x.priority == y.priority;
}

// Where a volume keeps a pod from nodes, room there would be kept in vain.
bool SaysOnlyRoomLacks(std::string_view scheduler_said) {
  const auto has = [&](std::string_view word) {
    return scheduler_said.find(word) != std::string_view::npos;
  };
  return has("Insufficient ") && !has("volume") && !has("Volume");
}

std::uint64_t NumberOf(std::string_view name, std::string_view of = {}) {
  Digester digester;
  digester.Add(name);
  digester.Add(of);
  return digester.digest().high;
}

// What makes another pod when that one ends: its Deployment, whose ReplicaSets come and go, or its
// controller. 0: nothing.
std::uint64_t OwnerOf(const PodRequest& pod, std::string_view replica_set) {
  if (pod.controller.empty() || !pod.gang.empty() || !pod.shape.wants_gpu()) return 0;
  const std::string_view deployment = replica_set.substr(0, replica_set.rfind('-'));
  return NumberOf(pod.id.namespace_name, replica_set.empty() ? pod.controller : deployment);
}

const PodRequest& RequestOf(const WaitingPod& waiting) { return *waiting.pod; }
const PodRequest& RequestOf(const std::shared_ptr<const PodRequest>& pod) { return *pod; }

template <class List>
List WithoutBound(List listed, const Snapshot& snapshot) {
  if (listed.empty()) return listed;
  std::unordered_set<std::string_view> uids, bound;
  for (const auto& waiting : listed) uids.insert(RequestOf(waiting).id.uid);
  snapshot.ForEachPod([&](const auto& record, NodeIndex) {
    const std::string& uid = record->pod.id.uid;
    if (record->state == PodState::kBound && uids.contains(uid)) bound.insert(uid);
  });
  std::erase_if(listed,
                [&](const auto& waiting) { return bound.contains(RequestOf(waiting).id.uid); });
  return listed;
}

}  // namespace

std::optional<PlaceInLine> WaitingPods::InLineOf(std::string_view uid, const WaitingPod& pod) {
  if (pod.pod == nullptr || !pod.unschedulable || pod.gated() || !pod.created) return std::nullopt;
  const PodRequest& request = *pod.pod;
  if (!request.shape.wants_several_gpus() || !request.gang.empty() || !request.refusal.empty() ||
      !SaysOnlyRoomLacks(pod.scheduler_said)) {
    return std::nullopt;
  }
  return PlaceInLine{.priority = request.priority, .since = *pod.created, .uid = uid};
}

void WaitingPods::SetPod(const std::string& uid, Entry& entry, WaitingPod pod, std::size_t bytes) {
  Uncount(uid, entry);
  entry.pod = std::move(pod);
  entry.bytes = bytes;
  bytes_ += entry.bytes;
  const bool has_request = entry.pod.pod != nullptr;
  if (has_request && !entry.outlined && entry.bytes > kSmallBytes) {
    large_.emplace(entry.bytes, uid);
  }
  if (const auto place = InLineOf(uid, entry.pod)) lacking_.emplace(*place, entry.pod.pod);
}

void WaitingPods::Uncount(std::string_view uid, const Entry& entry) {
  bytes_ -= entry.bytes;
  large_.erase({entry.bytes, uid});
  if (const auto place = InLineOf(uid, entry.pod)) lacking_.erase(*place);
}

void WaitingPods::OutlineLargest() {
  while (bytes_ > most_bytes_ && !large_.empty()) {
    const auto found = by_uid_.find(std::string(large_.rbegin()->second));
    Entry& entry = found->second;
    entry.outlined = true;
    WaitingPod pod = entry.pod;
    pod.pod = Outlined(*pod.pod);
    const std::size_t bytes = BytesOf(*pod.pod) + pod.scheduler_said.size() + pod.nominated.size() +
                              pod.replica_set.size();
    SetPod(found->first, entry, std::move(pod), bytes);
    const auto unit = by_gang_.find(entry.pod.pod->gang.id);
    if (unit != by_gang_.end()) unit->second.changed = ++changes_;
  }
}

void WaitingPods::Insert(const std::string& uid, Entry entry, std::size_t bytes) {
  if (!entry.shown) ++asked_;
  const auto at = by_uid_.emplace(uid, std::move(entry)).first;
  SetPod(at->first, at->second, std::move(at->second.pod), bytes);
  const PodRequest* const pod = at->second.pod.pod.get();
  if (pod == nullptr || pod->gang.empty()) return;
  Unit& unit = by_gang_[pod->gang.id];
  unit.members.insert_or_assign(uid, &at->second);
  unit.changed = ++changes_;
}

void WaitingPods::Erase(const std::string& uid) {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end()) return;
  Uncount(found->first, found->second);
  const Entry entry = std::move(found->second);
  by_uid_.erase(found);
  if (!entry.shown) --asked_;
  if (entry.pod.pod == nullptr || entry.pod.pod->gang.empty()) return;
  const auto unit = by_gang_.find(entry.pod.pod->gang.id);
  unit->second.members.erase(uid);
  unit->second.changed = ++changes_;
  if (unit->second.members.empty()) by_gang_.erase(unit);
}

void WaitingPods::EraseForGood(const std::string& uid) {
  const auto found = by_uid_.find(uid);
  const bool was_shown = found != by_uid_.end() && found->second.shown;
  Erase(uid);
  if (was_shown) dead_.Put(uid);
}

void WaitingPods::Put(WaitingPod pod) {
  const std::string uid = pod.pod->id.uid;
  const bool is_kept = IsKept(*pod.pod);
  const std::size_t whole = BytesOf(*pod.pod);
  Pods arrived;
  {
    const MutexLock lock(mutex_);
    const auto known = by_uid_.find(uid);
    if (known == by_uid_.end() || !known->second.shown) {
      if (tells_) {
        arrived.push_back(pod.pod);
      } else if (held_back_.size() < kMostHeldBack && whole <= kSmallBytes) {
        held_back_.push_back(pod.pod);
      }
    }
    Other other;
    if (!is_kept) {
      other = {pod.pod->id.namespace_name, pod.pod->id.name,
               Shortened(pod.pod->scheduler, kLongestScheduler)};
      if (bytes_ + whole <= most_bytes_) other.others = pod.pod->others;
      if (!pod.pod->claims.empty() && bytes_ + whole <= most_bytes_) {
        other.claiming = pod.pod;
        other.claiming_bytes = whole;
      }
      pod.pod = nullptr;
    }
    dead_.Erase(uid);
    // Else it would be made whole and outlined again with each change of its status.
    const bool outlined = known != by_uid_.end() && known->second.outlined && pod.pod != nullptr &&
                          bytes_ + whole > most_bytes_;
    if (outlined) pod.pod = Outlined(*pod.pod);
    const std::size_t request = !is_kept    ? kPerEntry + uid.size() + other.bytes()
                                : !outlined ? whole
                                            : BytesOf(*pod.pod);
    const std::size_t bytes = request + pod.held_back.size() + pod.scheduler_said.size() +
                              pod.nominated.size() + pod.replica_set.size();
    if (known != by_uid_.end() && SayTheSame(known->second.pod, pod)) {
      if (!std::exchange(known->second.shown, true)) --asked_;
      known->second.other = std::move(other);
      SetPod(known->first, known->second, std::move(pod), bytes);
    } else {
      const std::uint64_t added = known == by_uid_.end() ? ++added_ : known->second.added;
      Erase(uid);
      Insert(uid,
             {.pod = std::move(pod),
              .other = std::move(other),
              .shown = true,
              .added = added,
              .outlined = outlined},
             bytes);
    }
    OutlineLargest();
  }
  if (on_arrival_ && !arrived.empty()) on_arrival_(arrived);
}

void WaitingPods::Note(const PodRequest& pod) {
  if (!IsKept(pod)) return;
  const std::string& uid = pod.id.uid;
  const std::size_t bytes = BytesOf(pod);
  const MutexLock lock(mutex_);
  if (by_uid_.contains(uid) || dead_.contains(uid)) return;
  if (asked_ >= kMostAsked) return;
  Insert(uid, {.pod = {.pod = std::make_shared<const PodRequest>(pod)}, .added = ++added_}, bytes);
  OutlineLargest();
}

void WaitingPods::Regroup(const PodRequest& pod) {
  const MutexLock lock(mutex_);
  const auto known = by_uid_.find(pod.id.uid);
  if (known == by_uid_.end() || known->second.outlined || known->second.pod.pod == nullptr) return;
  Entry entry = known->second;
  Erase(pod.id.uid);
  const std::size_t bytes = entry.bytes + BytesOf(pod) - BytesOf(*entry.pod.pod);
  entry.pod.pod = std::make_shared<const PodRequest>(pod);
  Insert(pod.id.uid, std::move(entry), bytes);
}

std::size_t WaitingPods::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

void WaitingPods::Remove(std::string_view uid) {
  const std::string name(uid);
  const MutexLock lock(mutex_);
  EraseForGood(name);
}

WaitingPods::Mark WaitingPods::Here() const {
  const MutexLock lock(mutex_);
  return added_;
}

void WaitingPods::RemoveUnless(const std::function<bool(const std::string& uid)>& is_there,
                               Mark mark) {
  const MutexLock lock(mutex_);
  std::vector<std::string> gone;
  for (const auto& [uid, entry] : by_uid_) {
    if (entry.added <= mark && !is_there(uid)) gone.push_back(uid);
  }
  for (const std::string& uid : gone) EraseForGood(uid);
}

void WaitingPods::TellArrivals() {
  Pods arrived;
  {
    const MutexLock lock(mutex_);
    tells_ = true;
    arrived.swap(held_back_);
  }
  if (on_arrival_ && !arrived.empty()) on_arrival_(arrived);
}

void WaitingPods::HoldArrivalsBack() {
  const MutexLock lock(mutex_);
  tells_ = false;
}

WaitingPods::Pods WaitingPods::Current() const {
  Pods pods;
  {
    const MutexLock lock(mutex_);
    for (const auto& [uid, entry] : by_uid_) {
      const WaitingPod& waiting = entry.pod;
      if (!waiting.unschedulable || waiting.pod == nullptr) continue;
      if (waiting.pod->shape.mig() != nullptr) pods.push_back(waiting.pod);
    }
  }
  std::ranges::sort(pods, {}, [](const auto& pod) {
    return std::tie(pod->id.namespace_name, pod->id.name, pod->id.uid);
  });
  return pods;
}

std::vector<WaitingPod> WaitingPods::Everybody() const {
  std::vector<WaitingPod> pods;
  {
    const MutexLock lock(mutex_);
    for (const auto& [uid, entry] : by_uid_) {
      if (entry.pod.pod != nullptr) pods.push_back(entry.pod);
    }
  }
  std::ranges::sort(pods, {}, [](const WaitingPod& waiting) {
    const PodId& id = waiting.pod->id;
    return std::tie(id.namespace_name, id.name, id.uid);
  });
  return pods;
}

std::vector<WaitingPods::LacksRoom> WaitingPods::LackingRoom(std::size_t most,
                                                             std::size_t of_namespace) const {
  std::vector<LacksRoom> pods;
  {
    const MutexLock lock(mutex_);
    pods.reserve(std::min(lacking_.size(), kMostLookedAt));
    for (const auto& [place, pod] : lacking_) {
      if (pods.size() == kMostLookedAt) break;
      pods.push_back({pod, place.since});
    }
  }
  std::map<std::string_view, std::size_t> counts;
  std::erase_if(pods, [&](const LacksRoom& one) {
    return ++counts[one.pod->id.namespace_name] > of_namespace;
  });
  if (pods.size() > most) pods.resize(most);
  return pods;
}

std::vector<WaitingPod> WaitingPods::Claiming() const {
  std::vector<WaitingPod> pods;
  const MutexLock lock(mutex_);
  for (const auto& [uid, entry] : by_uid_) {
    if (entry.other.claiming == nullptr) continue;
    pods.push_back(entry.pod);
    pods.back().pod = entry.other.claiming;
  }
  return pods;
}

std::optional<WaitingPod> WaitingPods::FindClaiming(const std::string& uid) const {
  const MutexLock lock(mutex_);
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end() || found->second.other.claiming == nullptr) return std::nullopt;
  WaitingPod waiting = found->second.pod;
  waiting.pod = found->second.other.claiming;
  return waiting;
}

std::optional<WaitingPod> WaitingPods::Find(const std::string& uid) const {
  const MutexLock lock(mutex_);
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end() || found->second.pod.pod == nullptr) return std::nullopt;
  return found->second.pod;
}

std::optional<WaitingPod> WaitingPods::FindNamed(std::string_view namespace_name,
                                                 std::string_view name) const {
  const MutexLock lock(mutex_);
  const Entry* newest = nullptr;
  for (const auto& [uid, entry] : by_uid_) {
    if (entry.pod.pod == nullptr) continue;
    const PodId& id = entry.pod.pod->id;
    if (id.name != name || id.namespace_name != namespace_name) continue;
    if (newest == nullptr || entry.added > newest->added) newest = &entry;
  }
  return newest == nullptr ? std::nullopt : std::optional(newest->pod);
}

std::optional<WaitingPod> WaitingPods::FindOther(std::string_view namespace_name,
                                                 std::string_view name) const {
  const MutexLock lock(mutex_);
  const std::string* newest = nullptr;
  const Entry* entry_of = nullptr;
  for (const auto& [uid, entry] : by_uid_) {
    const Other& other = entry.other;
    if (entry.pod.pod != nullptr || other.name != name) continue;
    if (other.namespace_name != namespace_name) continue;
    if (newest != nullptr && entry.added < entry_of->added) continue;
    newest = &uid;
    entry_of = &entry;
  }
  if (newest == nullptr) return std::nullopt;
  WaitingPod waiting = entry_of->pod;
  PodRequest pod;
  pod.id = {*newest, entry_of->other.namespace_name, entry_of->other.name};
  pod.scheduler = entry_of->other.scheduler;
  pod.others = entry_of->other.others;
  waiting.pod = std::make_shared<const PodRequest>(std::move(pod));
  return waiting;
}

void WaitingPods::Ends(const PodRequest& pod, const PodLife& life, const std::string& node) {
  const std::uint64_t owner = OwnerOf(pod, life.replica_set);
  if (owner == 0 || !life.ends || life.evicted || life.completes || life.comes_back) return;
  Ending ending{.pod = NumberOf(pod.id.uid),
                .namespace_name = NumberOf(pod.id.namespace_name),
                .owner = owner,
                .node = node,
                .until = *life.ends + kRemembersFor};
  const MutexLock lock(mutex_);
  const auto is_of_it = [&ending](const Ending& one) {
    return one.namespace_name == ending.namespace_name;
  };
  const auto known = std::ranges::find(ending_, ending.pod, &Ending::pod);
  if (known != ending_.end()) {
    ending_.erase(known);  // it ends at another time
  } else if (std::ranges::count_if(ending_, is_of_it) >= std::ptrdiff_t{kMostEndingOfNamespace}) {
    ending_.erase(std::ranges::find_if(ending_, is_of_it));
  } else if (ending_.size() >= kMostEnding) {
    ending_.erase(ending_.begin());
  }
  ending_.push_back(std::move(ending));
}

std::vector<std::string> WaitingPods::FormerNodes(const std::string& uid, WallTime now) const {
  std::vector<std::string> nodes;
  const MutexLock lock(mutex_);
  const auto found = by_uid_.find(uid);
  if (ending_.empty() || found == by_uid_.end() || found->second.pod.pod == nullptr) return nodes;
  const WaitingPod& waiting = found->second.pod;
  const std::uint64_t owner = OwnerOf(*waiting.pod, waiting.replica_set);
  for (const Ending& one : ending_) {
    if (owner == 0 || one.owner != owner || one.until < now) continue;
    if (std::ranges::find(nodes, one.node) == nodes.end()) nodes.push_back(one.node);
  }
  return nodes;
}

void WaitingPods::Replaces(const std::string& uid, std::string_view node) {
  const MutexLock lock(mutex_);
  const auto found = by_uid_.find(uid);
  if (ending_.empty() || found == by_uid_.end() || found->second.pod.pod == nullptr) return;
  const std::uint64_t owner = OwnerOf(*found->second.pod.pod, found->second.pod.replica_set);
  const auto replaced = std::ranges::find_if(
      ending_, [&](const Ending& one) { return one.owner == owner && one.node == node; });
  if (replaced != ending_.end()) ending_.erase(replaced);
}

std::vector<WaitingPod> WaitingPods::WaitingMembers(const GangId& gang) const {
  std::vector<WaitingPod> members;
  const MutexLock lock(mutex_);
  const auto unit = by_gang_.find(gang);
  if (unit == by_gang_.end()) return members;
  for (const auto& [uid, entry] : unit->second.members) {
    if (!entry->pod.gated()) members.push_back(entry->pod);
  }
  return members;
}

std::vector<std::shared_ptr<const PodRequest>> WaitingPods::GatedMembers(const GangId& gang) const {
  std::vector<std::shared_ptr<const PodRequest>> members;
  const MutexLock lock(mutex_);
  const auto unit = by_gang_.find(gang);
  if (unit == by_gang_.end()) return members;
  for (const auto& [uid, entry] : unit->second.members) {
    if (entry->pod.gated()) members.push_back(entry->pod.pod);
  }
  return members;
}

std::shared_ptr<const PodRequest> WaitingPods::AnyMember(const GangId& gang) const {
  const MutexLock lock(mutex_);
  const auto unit = by_gang_.find(gang);
  if (unit == by_gang_.end()) return nullptr;
  for (const auto& [uid, entry] : unit->second.members) {
    if (!entry->pod.gated()) return entry->pod.pod;
  }
  return nullptr;
}

std::vector<GangId> WaitingPods::GangsSince(std::uint64_t change) const {
  std::vector<GangId> gangs;
  const MutexLock lock(mutex_);
  for (const auto& [gang, unit] : by_gang_) {
    if (unit.changed > change) gangs.push_back(gang);
  }
  return gangs;
}

std::uint64_t WaitingPods::changes() const {
  const MutexLock lock(mutex_);
  return changes_;
}

std::uint64_t WaitingPods::ChangesOf(const GangId& gang) const {
  const MutexLock lock(mutex_);
  const auto unit = by_gang_.find(gang);
  return unit == by_gang_.end() ? 0 : unit->second.changed;
}

std::vector<WaitingPod> StillWaiting(std::vector<WaitingPod> listed, const Snapshot& snapshot) {
  return WithoutBound(std::move(listed), snapshot);
}

WaitingPods::Pods StillWaiting(WaitingPods::Pods listed, const Snapshot& snapshot) {
  return WithoutBound(std::move(listed), snapshot);
}

}  // namespace berth
