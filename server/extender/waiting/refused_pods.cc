// SPDX-License-Identifier: Apache-2.0
#include "server/extender/waiting/refused_pods.h"

#include <algorithm>

#include "cluster/state/waiting_pods.h"
#include "cluster/values/held_bytes.h"
#include "scoring/admission.h"
#include "scoring/registry.h"

namespace berth {
namespace {

constexpr Duration kFirstPause = std::chrono::seconds(1);  // after the first time in vain, doubled
constexpr Duration kLongestPause = std::chrono::seconds(8);
constexpr Duration kForgotten = std::chrono::minutes(1);  // after which pauses begin anew
// What makes room for a pod that was refused just now is what kube-scheduler asked for: it will not
// ask again. For one that has waited longer it most probably will, without being woken.
constexpr Duration kJustNow = std::chrono::seconds(1);
constexpr Duration kGrace = std::chrono::milliseconds(100);
constexpr Duration kOthersEvery = std::chrono::seconds(1);

bool Takes(const Node& node, const PodRequest& pod) {
  return FirstObjection(node, pod.shape) == Reason::kFits &&
         Admits(node.spec(), pod) == Reason::kFits;
}

// Whether the group says what the request would have taken from it, had it been there in time.
bool SaysMore(const PodGroup& group, const PodRequest& pod) {
  return pod.gang.minimum != group.min_members ||
         (pod.domain == DomainAsk{} && group.domain != DomainAsk{});
}

}  // namespace

// What changed, and per shape which of the changed nodes take it now.
struct RefusedPods::Change {
  struct Pair {
    const Node* before;  // nullptr: there was none of that name
    const Node* now;
  };
  struct Taker {
    const Node* node;
    const Node* before;  // only where it took the shape too
  };
  struct ShapeHash {
    std::size_t operator()(const RequestShape& shape) const { return HashValue(shape); }
  };

  Change(const Snapshot& before, const Snapshot& now) {
    if (before.SameNodes(now)) {
      now.ForEachDifference(before, [&](NodeIndex i) {
        pairs.push_back({&before.node(i), &now.node(i)});
      });
      return;
    }
    for (NodeIndex i = 0; i < now.size(); ++i) {
      const Node* const was = before.FindNode(now.names().name(i));
      if (was != &now.node(i)) pairs.push_back({was, &now.node(i)});
    }
  }

  const std::vector<Taker>& TakersOf(const RequestShape& shape) {
    const auto [found, is_new] = takers.try_emplace(shape);
    if (!is_new) return found->second;
    for (const Pair& pair : pairs) {
      if (FirstObjection(*pair.now, shape) != Reason::kFits) continue;
      const bool took =
          pair.before != nullptr && FirstObjection(*pair.before, shape) == Reason::kFits;
      found->second.push_back({pair.now, took ? pair.before : nullptr});
    }
    return found->second;
  }

  std::vector<Pair> pairs;
  std::unordered_map<RequestShape, std::vector<Taker>, ShapeHash> takers;
};

void RefusedPods::Refused(std::shared_ptr<const PodRequest> pod,
                          std::shared_ptr<const Snapshot> snapshot, Instant now,
                          std::optional<std::uint64_t> kept_out) {
  Entry& entry = entries_[pod->id.uid];
  bytes_ += HeldBytes(*pod) - entry.bytes;
  entry.bytes = HeldBytes(*pod);
  entry.pod = std::move(pod);
  entry.seen = std::move(snapshot);
  entry.refused = ++refusals_;
  entry.refused_at = now;
  entry.waiting = true;
  entry.outdated = false;
  entry.changed = false;
  entry.room.clear();
  entry.kept_out = kept_out;
  if (groups_ != nullptr && !entry.pod->gang.empty()) {
    entry.group = groups_->Find(entry.pod->gang);
    entry.outdated = entry.group && SaysMore(*entry.group, *entry.pod);
    entry.outdated_from = entry.woken_for_group + kForItsGroup;
  }
  ForgetSome();
}

void RefusedPods::ForgetSome() {
  while (bytes_ > kMostBytes && entries_.size() > 1) {
    Erase(std::ranges::max_element(entries_, {},
                                   [](const auto& known) { return known.second.bytes; }));
  }
  if (entries_.size() <= kMostPods) return;
  Erase(std::ranges::min_element(entries_, {},
                                 [](const auto& known) { return known.second.refused; }));
}

void RefusedPods::Erase(Entries::iterator entry) {
  bytes_ -= entry->second.bytes;
  entries_.erase(entry);
}

void RefusedPods::Found(const std::string& uid) {
  const auto known = entries_.find(uid);
  if (known != entries_.end()) Erase(known);
}

void RefusedPods::ClassesChanged() {
  for (auto& [uid, entry] : entries_) {
    const NodeWishes& nodes = entry.pod->shape.nodes;
    if (nodes.required.empty() && nodes.forbidden.empty()) continue;
    entry.outdated = true;
    entry.outdated_from = {};
  }
}

bool RefusedPods::GroupChanged(Entry& entry) const {
  if (groups_ == nullptr || entry.pod->gang.empty()) return false;
  std::optional<PodGroup> now = groups_->Find(entry.pod->gang);
  if (now == entry.group) return false;
  entry.group = std::move(now);
  return true;
}

void RefusedPods::LookAt(Entry& entry, Change& change) const {
  const PodRequest& pod = *entry.pod;
  if (!pod.refusal.empty() || change.pairs.empty()) return;
  if (pod.domain.required) {
    entry.changed = true;
    return;
  }
  for (const Change::Taker& taker : change.TakersOf(pod.shape)) {
    const NodeSpec& spec = taker.node->spec();
    if (Admits(spec, pod) != Reason::kFits) continue;
    if (taker.before != nullptr && Admits(taker.before->spec(), pod) == Reason::kFits) continue;
    if (std::ranges::find(entry.room, spec.name) == entry.room.end()) {
      entry.room.push_back(spec.name);
    }
  }
}

bool RefusedPods::HasRoom(Entry& entry, const std::shared_ptr<const Snapshot>& snapshot,
                          Instant now) const {
  if (std::exchange(entry.changed, false)) {
    if (fits_(snapshot, *entry.pod)) return true;
    entry.not_before = std::max(entry.not_before, now + kFirstPause);  // it is not cheap
    return false;
  }
  std::erase_if(entry.room, [&](const std::string& name) {
    const Node* const node = snapshot->FindNode(name);
    return node == nullptr || !Takes(*node, *entry.pod);
  });
  return !entry.room.empty();
}

std::vector<RefusedPods::Entry*> RefusedPods::Candidates(
    const std::shared_ptr<const Snapshot>& snapshot, Instant now) {
  std::unordered_map<const Snapshot*, Change> changes;  // most entries have seen the same
  std::vector<Entry*> candidates;
  for (auto& [uid, entry] : entries_) {
    if (!entry.waiting) continue;
    const bool had_some = entry.changed || !entry.room.empty();
    if (entry.seen != snapshot) {
      LookAt(entry, changes.try_emplace(entry.seen.get(), *entry.seen, *snapshot).first->second);
    }
    if (GroupChanged(entry)) {
      entry.outdated = true;
      entry.outdated_from = entry.woken_for_group + kForItsGroup;
    }
    if (entry.kept_out && *entry.kept_out != rooms_.openings()) {
      entry.kept_out.reset();
      entry.outdated = true;
      entry.outdated_from = {};
    }
    if (!entry.pod->gang.empty() || entry.kept_out) next_ = std::min(next_, now + kOthersEvery);
    const bool has_some = entry.changed || !entry.room.empty();
    if (has_some && !had_some && now - entry.refused_at > kJustNow) {
      entry.not_before = std::max(entry.not_before, now + kGrace);
    }
    if (entry.outdated || has_some) candidates.push_back(&entry);
  }
  // Only now: until here the snapshots that entries had seen were needed.
  for (auto& [uid, entry] : entries_) entry.seen = entry.waiting ? snapshot : nullptr;
  std::ranges::sort(candidates, ComesBefore, [](const Entry* entry) {
    return PlaceInLine{.priority = entry->pod->priority, .nth = entry->refused};
  });
  return candidates;
}

void RefusedPods::WakeThoseWithRoom(const std::shared_ptr<const Snapshot>& snapshot, Instant now,
                                    const Wake& wake) {
  next_ = Instant::max();
  if (now - outdated_since_ >= kBetweenLooks) {
    outdated_since_ = now;
    outdated_named_ = 0;
  }
  std::size_t with_room = 0;
  bool takes = true;
  for (Entry* const entry : Candidates(snapshot, now)) {
    const bool is_outdated = entry->outdated && now >= entry->outdated_from;
    const bool has_some = entry->changed || !entry->room.empty();
    const Instant from = is_outdated || has_some
                             ? entry->not_before
                             : std::max(entry->not_before, entry->outdated_from);
    std::size_t& named = is_outdated ? outdated_named_ : with_room;
    if (!takes || now < from || named == kMostAtOnce) {
      next_ = std::min(next_, std::max(from, now + kBetweenLooks));
      continue;
    }
    const bool changed = entry->changed;
    if (!is_outdated && !HasRoom(*entry, snapshot, now)) continue;
    takes = wake(entry->pod->id);
    if (!takes) {
      entry->changed = changed;
      next_ = std::min(next_, now + kBetweenLooks);
      continue;
    }
    ++named;
    if (is_outdated) entry->woken_for_group = now;
    if (now - entry->woken > kForgotten) entry->wakes = 0;
    entry->woken = now;
    entry->not_before =
        now + std::min(kLongestPause, kFirstPause * (1 << std::min(entry->wakes, 3)));
    ++entry->wakes;
    entry->waiting = false;
    entry->seen = nullptr;
  }
}

}  // namespace berth
