// SPDX-License-Identifier: Apache-2.0
#include "scoring/earmarks/earmark_line.h"

#include <algorithm>
#include <bit>

#include "cluster/values/held_bytes.h"
#include "scoring/admission.h"
#include "scoring/devices/device_picker.h"
#include "scoring/registry.h"
#include "scoring/victims.h"

namespace berth {
namespace {

bool IsWorthKeepingFor(const PodRequest& pod) {
  return pod.shape.wants_gpu() && pod.refusal.empty() && !pod.domain.required;
}

std::int64_t HealthyGpus(const Snapshot& snapshot) {
  std::int64_t sum = 0;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) sum += snapshot.node(i).healthy_gpus();
  return sum;
}

EarmarkOwner OwnerOf(const PodRequest& pod, WallTime since) {
  return {pod.id, pod.gang.id, pod.priority, pod.may_preempt, since, 0};
}

bool Leaves(const PodRecord& held, const PodEnds& ends) {
  return held.leaving || held.life.completes || ends.Of(held);
}

// What a node has when the pods that leave have ended: at most so many GPUs, and so many of them
// are in use until then. When that is: WallTime::max() where nobody knows.
struct Later {
  int gpus = 0, busy = 0;
  WallTime end{};
};
Later LaterOn(const Node& node, const PodEnds& ends) {
  WallTime last = ends.now();
  GpuMask idle = 0, busy = 0;
  for (std::size_t i = 0; i < node.gpus().size(); ++i) {
    if (node.gpus()[i].idle()) idle |= GpuBit(static_cast<int>(i));
  }
  for (const auto& held : node.pods()) {
    if (!Leaves(*held, ends)) continue;
    last = std::max(last, ends.Of(*held).value_or(WallTime::max()));
    for (const DeviceGrant& grant : held->placement.grants) busy |= GpuBit(grant.gpu);
  }
  const GpuMask open = ~node.closed();
  return {std::popcount((idle | busy) & open), std::popcount(busy & open), last};
}

}  // namespace

class EarmarkLine::Fitting {
 public:
  bool operator()(const Node& node, const PodRequest& pod, const RequestShape* shape) {
    if (Admits(node.spec(), pod) != Reason::kFits) return false;
    const auto [known, is_new] = known_.try_emplace(shape, false);
    if (is_new) known->second = Fits(node, *shape);
    return known->second;
  }
  void NodeChanged() { known_.clear(); }

 private:
  std::unordered_map<const RequestShape*, bool> known_;
};

std::size_t EarmarkLine::Waiter::kept() const {
  return nodes.size() - static_cast<std::size_t>(std::ranges::count(nodes, kNoNode));
}

int EarmarkLine::GpusOf(const RequestShape& shape) {
  const int whole = shape.gpu_count();
  return whole > 0 ? whole : 1;  // MIG devices are of one GPU at least
}

std::string EarmarkLine::NameOf(const PodRequest& first) {
  return first.gang.empty() ? first.id.uid : first.gang.id.text();
}

// Who comes last leaves the line where it is full, if it comes after the new one.
bool EarmarkLine::MakePlace(const InLine& waiter, std::size_t bytes) {
  const auto is_full = [&] {
    return line_.size() >= kMost || pods_ + waiter.pods.size() > kMostPods ||
           bytes_ + bytes > kMostBytes;
  };
  while (is_full()) {
    if (line_.empty()) return false;
    const Waiter& last = **line_.rbegin();
    if (!ComesBefore(waiter.place(), last.place())) return false;
    Leave(NameOf(last.first()));
  }
  return true;
}

void EarmarkLine::Stand(InLine waiter, const std::shared_ptr<const Snapshot>& refused_on,
                        Instant now) {
  const PodRequest& first = waiter.first();
  if (!std::ranges::all_of(waiter.pods, IsWorthKeepingFor,
                           [](const auto& pod) -> const PodRequest& { return *pod; })) {
    return;
  }
  const std::string name = NameOf(first);
  auto entry = std::make_unique<Waiter>();
  if (const auto before = by_name_.find(name); before != by_name_.end()) {
    Waiter& known = *before->second;
    if (known.pods.size() == waiter.pods.size() && known.first().shape == first.shape &&
        known.first().priority == first.priority) {
      known.stood = now;  // where it stood
      return;
    }
    entry->passed_over = known.passed_over;
    entry->times_passed_over = known.times_passed_over;
    Leave(name);
  }
  for (const auto& pod : waiter.pods) entry->bytes += HeldBytes(*pod);
  entry->since = waiter.since = SinceOfLost(first, waiter.since, *refused_on);
  if (!MakePlace(waiter, entry->bytes)) return;
  if (line_.empty()) {  // what changed before is nobody's
    snapshot_ = refused_on;
    gpus_ = HealthyGpus(*snapshot_);
    changed_.clear();
    released_.clear();
  }
  entry->pods = std::move(waiter.pods);
  for (const auto& pod : entry->pods) {
    const auto shape = shapes_.try_emplace(pod->shape, 0).first;
    ++shape->second;
    entry->shapes.push_back(&shape->first);
  }
  entry->nodes.assign(entry->pods.size(), kNoNode);
  entry->stood = now;
  // A gang was refused because not all of it fits: some of it may.
  entry->looks_everywhere = entry->is_gang() || !refused_on->SameNodes(*snapshot_);
  if (!entry->looks_everywhere) {
    snapshot_->ForEachDifference(*refused_on, [this](NodeIndex node) { changed_.insert(node); });
  }
  pods_ += entry->pods.size();
  bytes_ += entry->bytes;
  line_.insert(entry.get());
  by_name_.emplace(name, std::move(entry));
  is_other_line_ = true;
}

void EarmarkLine::Release(Waiter& waiter) {
  if (&waiter == gatherer_) StopGathering();
  Unreserve(waiter);
  for (std::size_t i = 0; i < waiter.nodes.size(); ++i) {
    const NodeIndex node = std::exchange(waiter.nodes[i], kNoNode);
    if (node == kNoNode) continue;
    kept_gpus_ -= GpusOf(waiter.pods[i]->shape);
    std::erase_if(marked_.at(node).owners,
                  [&waiter](const auto& owner) { return owner.first == &waiter; });
    released_.insert(node);
    changed_.insert(node);
    is_new_ = true;
  }
  waiter.offered.reset();
  waiter.nominated.reset();
}

void EarmarkLine::Leave(std::string_view name) {
  const auto found = by_name_.find(std::string(name));
  if (found == by_name_.end()) return;
  Release(*found->second);
  ForgetAgreed(*found->second);
  is_other_line_ = true;
  pods_ -= found->second->pods.size();
  bytes_ -= found->second->bytes;
  for (const RequestShape* const shape : found->second->shapes) {
    const auto users = shapes_.find(*shape);
    if (--users->second == 0) shapes_.erase(users);
  }
  line_.erase(found->second.get());
  by_name_.erase(found);
}

void EarmarkLine::KeepIf(const Waits& waits) {
  std::vector<std::string> gone;
  for (const auto& [name, waiter] : by_name_) {
    if (!waits(waiter->first())) gone.push_back(name);
  }
  for (const std::string& name : gone) Leave(name);
}

// What changed is found by the identity of the nodes' objects; where nodes have come or gone, by
// name, and what is kept moves with its node.
void EarmarkLine::FindChanged(const std::shared_ptr<const Snapshot>& snapshot) {
  if (snapshot == snapshot_) return;
  if (snapshot->SameNodes(*snapshot_)) {
    snapshot->ForEachDifference(*snapshot_, [this](NodeIndex node) { changed_.insert(node); });
    snapshot_ = snapshot;
    return;
  }
  const std::shared_ptr<const Snapshot> before = std::exchange(snapshot_, snapshot);
  awaited_.clear();
  awaited_gpus_ = 0;
  scanned_ = {};
  for (auto& [node, on] : reserved_) on.waiter->reserved = kNoNode;
  reserved_.clear();
  reserved_gpus_ = 0;
  ends_at_.reset();
  std::map<NodeIndex, Marked> marked;
  for (auto& [node, mark] : marked_) {
    const NodeIndex now = snapshot->names().Find(before->names().name(node));
    for (const auto& [waiter, pod] : mark.owners) {
      waiter->nodes[pod] = now;
      if (now == kNoNode) {
        kept_gpus_ -= GpusOf(waiter->pods[pod]->shape);
        waiter->looks_everywhere = true;
        waiter->nominated.reset();
      }
    }
    if (now != kNoNode) marked.emplace(now, std::move(mark));
  }
  marked_ = std::move(marked);
  changed_.clear();
  released_.clear();
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    const NodeIndex then = before->names().Find(snapshot->names().name(i));
    if (then == kNoNode || snapshot->shared(i) != before->shared(then)) changed_.insert(i);
  }
  for (const auto& [node, mark] : marked_) changed_.insert(node);
  IndexAgreed();
  gpus_ = HealthyGpus(*snapshot);
  is_new_ = true;
}

// Puts the owners on the node as it is now, the first in line first; who does not fit any more has
// nothing kept there.
void EarmarkLine::Rebuild(NodeIndex node, Instant now) {
  const auto found = marked_.find(node);
  if (found == marked_.end()) return;
  Marked& mark = found->second;
  std::shared_ptr<const Node> as_if = snapshot_->shared(node);
  const bool nominated = std::ranges::any_of(
      mark.owners, [](const auto& owner) { return owner.first->nominated.has_value(); });
  std::erase_if(mark.leaving, [&](const std::string& uid) {
    return !nominated || as_if->FindPod(uid) == nullptr;
  });
  if (!mark.leaving.empty()) {
    as_if = std::make_shared<const Node>(WithoutPods(*as_if, mark.leaving));
  }
  std::erase_if(mark.owners, [&](const auto& owner) {
    auto& [waiter, pod] = owner;
    const PodRequest& request = *waiter->pods[pod];
    const bool admits = Admits(as_if->spec(), request) == Reason::kFits && !IsKept(node, request);
    if (auto with = admits ? WithPod(*as_if, request) : nullptr) {
      as_if = std::move(with);
      if (waiter->nominated && mark.leaving.empty() && !waiter->offered) {
        waiter->offered = now;
        ForgetAgreed(*waiter);
      }
      return false;
    }
    waiter->nodes[pod] = kNoNode;
    waiter->nominated.reset();
    waiter->looks_everywhere = true;
    kept_gpus_ -= GpusOf(request.shape);
    return true;
  });
  mark.as_if = std::move(as_if);
  if (mark.owners.empty()) marked_.erase(found);
  is_new_ = true;
}

bool EarmarkLine::MayKeep(const Waiter& waiter, std::int64_t gpus,
                          const EarmarkLimits& limits) const {
  // What a gang or a pod gets now it awaits no more.
  const std::int64_t awaited = &waiter == gatherer_ ? 0 : awaited_gpus_;
  const std::int64_t own = waiter.reserved == kNoNode ? 0 : GpusOf(waiter.first().shape);
  const std::int64_t reserved = reserved_gpus_ - own;
  if (kept_gpus_ == 0 && reserved == 0 && !waiter.is_gang()) return true;
  const std::int64_t after = kept_gpus_ + gpus + awaited + reserved;
  return after * 100 <= gpus_ * limits.most_gpus || (waiter.is_gang() && after <= kMostAlone);
}

// By GPUs alone: a guard against gathering in vain, not a plan.
bool EarmarkLine::CouldFit(const Waiter& gang) const {
  std::size_t pod = 0;
  for (NodeIndex i = 0; i < snapshot_->size() && pod < gang.pods.size(); ++i) {
    const Node& node = snapshot_->node(i);
    int gpus = -1;
    while (pod < gang.pods.size()) {
      const PodRequest& member = *gang.pods[pod];
      if (gpus < 0 && Admits(node.spec(), member) != Reason::kFits) break;
      if (gpus < 0) gpus = member.shape.mig() ? node.healthy_gpus() : LaterOn(node, ends_).gpus;
      gpus -= GpusOf(member.shape);
      if (gpus < 0) break;
      ++pod;
    }
  }
  return pod == gang.pods.size();
}

void EarmarkLine::StopGathering() {
  if (!awaited_.empty()) is_new_ = true;
  awaited_.clear();
  awaited_gpus_ = 0;
  gatherer_ = nullptr;
}

// The first in line that could all fit. One is judged in a look: thousands may stand there.
void EarmarkLine::ChooseGatherer(Instant now, Scope scope) {
  bool may_judge = scope == Scope::kAll;
  for (Waiter* const gang : line_) {
    if (!gang->is_gang() || now < gang->passed_over) continue;
    if (may_judge && (!gang->judged || now - *gang->judged >= kBetweenHopes)) {
      gang->has_hope = CouldFit(*gang);
      gang->judged = now;
      may_judge = false;
    }
    if (!gang->has_hope) {
      if (gang == gatherer_) Release(*gang);
      continue;
    }
    if (gang == gatherer_) return;
    if (gatherer_ != nullptr) Release(*gatherer_);
    gatherer_ = gang;
    gang->looks_everywhere = true;
    scanned_ = {};
    return;
  }
  if (gatherer_ != nullptr) Release(*gatherer_);
}

// Those with room for a member later: those that are awaited already, then the soonest where it is
// known when; then the least held, and the first by name.
std::vector<NodeIndex> EarmarkLine::NodesToAwait(const Waiter& gang) const {
  std::vector<std::tuple<bool, WallTime, int, NodeIndex>> found;
  for (NodeIndex i = 0; i < snapshot_->size(); ++i) {
    const Node& node = snapshot_->node(i);
    const Later later = LaterOn(node, ends_);
    if (later.busy == 0 || later.gpus < GpusOf(gang.first().shape)) continue;
    if (Admits(node.spec(), gang.first()) != Reason::kFits || IsKept(i, gang.first())) continue;
    found.emplace_back(!awaited_.contains(i), later.end, later.busy, i);
  }
  const auto most = std::min(found.size(), kMostAwaited);
  std::ranges::partial_sort(found, found.begin() + static_cast<std::ptrdiff_t>(most));
  std::vector<NodeIndex> nodes;
  for (std::size_t i = 0; i < most; ++i) nodes.push_back(std::get<NodeIndex>(found[i]));
  return nodes;
}

// As many of the open pods as the node has room for, beside those for whom room is kept there. What
// goes there leaves `open`.
void EarmarkLine::AwaitOn(NodeIndex node, std::vector<std::size_t>& open,
                          const EarmarkLimits& limits) {
  const auto leaves = [this](const PodRecord& held) { return Leaves(held, ends_); };
  Awaited awaited{{}, std::make_shared<const Node>(snapshot_->node(node).Without(leaves))};
  if (const auto mark = marked_.find(node); mark != marked_.end()) {
    for (const auto& [waiter, pod] : mark->second.owners) {
      if (auto with = WithPod(*awaited.then, *waiter->pods[pod])) awaited.then = std::move(with);
    }
  }
  std::erase_if(open, [&](std::size_t pod) {
    const PodRequest& member = *gatherer_->pods[pod];
    if (!MayKeep(*gatherer_, GpusOf(member.shape) + awaited_gpus_, limits)) return false;
    auto with = WithPod(*awaited.then, member);
    if (with == nullptr) return false;
    awaited.then = std::move(with);
    awaited.pods.push_back(pod);
    awaited_gpus_ += GpusOf(member.shape);
    return true;
  });
  if (!awaited.pods.empty()) awaited_.emplace(node, std::move(awaited));
}

// What has changed where a node is awaited; the others have their turn with the next scan.
void EarmarkLine::RenewAwaited(const EarmarkLimits& limits) {
  for (const NodeIndex node : changed_) {
    const auto found = awaited_.find(node);
    if (found == awaited_.end()) continue;
    std::vector<std::size_t> open = std::move(found->second.pods);
    awaited_.erase(found);
    for (const std::size_t pod : open) awaited_gpus_ -= GpusOf(gatherer_->pods[pod]->shape);
    std::erase_if(open, [this](std::size_t pod) { return gatherer_->nodes[pod] != kNoNode; });
    AwaitOn(node, open, limits);
    scanned_ = {};
    is_new_ = true;
  }
}

// For the members of the gang that gathers for whom no room is kept.
void EarmarkLine::Await(const EarmarkLimits& limits, Instant now, Scope scope) {
  if (gatherer_ == nullptr) return;
  if (scope == Scope::kChanges) return RenewAwaited(limits);
  const bool is_due = scanned_ == Instant() || now - scanned_ >= kBetweenScans;
  const auto has_changed = [this](const auto& one) { return changed_.contains(one.first); };
  if (!is_due && std::ranges::none_of(awaited_, has_changed)) return;
  std::vector<NodeIndex> nodes;
  if (is_due) {
    nodes = NodesToAwait(*gatherer_);
    scanned_ = now;
  } else {
    for (const auto& [node, one] : awaited_) nodes.push_back(node);
  }
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < gatherer_->nodes.size() && open.size() < kMostAwaited; ++i) {
    if (gatherer_->nodes[i] == kNoNode) open.push_back(i);
  }
  awaited_.clear();
  awaited_gpus_ = 0;
  for (const NodeIndex node : nodes) {
    if (open.empty()) break;
    AwaitOn(node, open, limits);
  }
  awaited_from_ = open.empty() ? WallTime::min() : WallTime::max();
  for (const auto& [node, one] : awaited_) {
    awaited_from_ = std::max(awaited_from_, LaterOn(snapshot_->node(node), ends_).end);
  }
  if (!awaited_.empty() && !gatherer_->offered) gatherer_->offered = now;
  is_new_ = true;
}

void EarmarkLine::OfferTo(Waiter& waiter, NodeIndex node, const EarmarkLimits& limits,
                          Instant now) {
  for (std::size_t i = 0; i < waiter.pods.size(); ++i) {
    if (waiter.nodes[i] != kNoNode) continue;
    const PodRequest& pod = *waiter.pods[i];
    if (!MayKeep(waiter, GpusOf(pod.shape), limits) || IsKept(node, pod)) return;
    const auto mark = marked_.find(node);
    const bool ending = mark != marked_.end() && !mark->second.leaving.empty();
    if (ending && !Fits(snapshot_->node(node), pod.shape)) return;  // what victims still have
    const Node& free = mark == marked_.end() ? snapshot_->node(node) : *mark->second.as_if;
    auto with = WithPod(free, pod);
    if (with == nullptr) {
      if (i + 1 < waiter.pods.size() && waiter.shapes[i + 1] != waiter.shapes[i]) continue;
      return;
    }
    Marked& kept = marked_[node];
    kept.owners.emplace_back(&waiter, i);
    kept.as_if = std::move(with);
    waiter.nodes[i] = node;
    kept_gpus_ += GpusOf(pod.shape);
    if (!waiter.offered) waiter.offered = now;
    if (released_.contains(node) && !waiter.is_gang()) wakes_.push_back(pod.id);
    Unreserve(waiter);
    is_new_ = true;
  }
}

void EarmarkLine::Offer(NodeIndex node, const EarmarkLimits& limits, Instant now,
                        const Waits& waits) {
  Fitting fits;
  std::vector<std::string> gone;
  for (Waiter* const waiter : line_) {
    if (now < waiter->passed_over || (waiter->is_gang() && waiter != gatherer_)) continue;
    const auto open = std::ranges::find(waiter->nodes, kNoNode);
    if (open == waiter->nodes.end()) continue;
    const auto pod = static_cast<std::size_t>(open - waiter->nodes.begin());
    const auto mark = marked_.find(node);
    const Node& free = mark == marked_.end() ? snapshot_->node(node) : *mark->second.as_if;
    if (!fits(free, *waiter->pods[pod], waiter->shapes[pod])) continue;
    if (!LeavesReserved(node, *waiter)) continue;
    if (waits && !waits(waiter->first())) {
      gone.push_back(NameOf(waiter->first()));
      continue;
    }
    const std::int64_t before = kept_gpus_;
    OfferTo(*waiter, node, limits, now);
    if (kept_gpus_ != before) fits.NodeChanged();
  }
  for (const std::string& name : gone) {
    if (by_name_.at(name)->kept() == 0) Leave(name);  // else with the next look
  }
}

// One waiter of a look: the others have the next ones.
void EarmarkLine::LookEverywhere(const EarmarkLimits& limits, Instant now, const Waits& waits) {
  const auto found = std::ranges::find_if(line_, [this, now](const Waiter* waiter) {
    return waiter->looks_everywhere && now >= waiter->passed_over &&
           (!waiter->is_gang() || waiter == gatherer_);
  });
  if (found == line_.end()) return;
  Waiter& waiter = **found;
  waiter.looks_everywhere = false;
  if (waits && !waits(waiter.first())) return;
  for (NodeIndex i = 0; i < snapshot_->size(); ++i) {
    const auto open = std::ranges::find(waiter.nodes, kNoNode);
    if (open == waiter.nodes.end()) break;
    const auto pod = static_cast<std::size_t>(open - waiter.nodes.begin());
    if (Admits(snapshot_->node(i).spec(), *waiter.pods[pod]) != Reason::kFits) continue;
    if (!Fits(snapshot_->node(i), waiter.pods[pod]->shape)) continue;
    if (LeavesReserved(i, waiter)) OfferTo(waiter, i, limits, now);
  }
}

void EarmarkLine::PassOver(const EarmarkLimits& limits, Instant now) {
  std::vector<std::string> forgotten;
  for (const Waiter* const waiter : line_) {
    // Who was passed over is not forgotten meanwhile: it would come back as if it never had been.
    const Instant last = std::max(waiter->stood, waiter->passed_over);
    if (waiter->is_gang() || now - last < kForgotten) continue;
    forgotten.push_back(NameOf(waiter->first()));
  }
  for (const std::string& name : forgotten) Leave(name);
  for (Waiter* const waiter : line_) {
    if (IsInVain(*waiter, now)) Release(*waiter);
    if (!waiter->offered) continue;
    const Duration most = waiter->is_gang() ? limits.gang : kOffer;
    if (now - *waiter->offered < most) continue;
    Release(*waiter);
    Duration pause = waiter->is_gang() ? limits.gang : kPassOver;
    for (int i = 0; i < waiter->times_passed_over && pause < kLongestPassOver; ++i) pause *= 2;
    waiter->passed_over = now + std::min(pause, std::max(kLongestPassOver, limits.gang));
    waiter->times_passed_over = std::min(waiter->times_passed_over + 1, 16);
    waiter->looks_everywhere = true;
  }
}

std::optional<Instant> EarmarkLine::NextLook() const {
  std::optional<Instant> next;
  const auto or_at = [&next](Instant at) { next = next ? std::min(*next, at) : at; };
  for (const Waiter* const waiter : line_) {
    if (waiter->offered && !waiter->is_gang()) or_at(*waiter->offered + kOffer);
    if (waiter->nominated && !waiter->offered) or_at(*waiter->nominated + kOffer);
    if (waiter->looks_everywhere && !waiter->is_gang()) or_at(waiter->passed_over);
  }
  return next;
}

std::vector<PodId> EarmarkLine::Look(const std::shared_ptr<const Snapshot>& snapshot,
                                     const EarmarkLimits& limits, const Time& time,
                                     const Waits& waits, Scope scope,
                                     std::shared_ptr<const KeptNodes> kept) {
  const Instant now = time.now;
  FindChanged(snapshot);
  TakeUpKept(std::move(kept));
  PassOver(limits, now);
  Nominate(now);
  if (waits) {
    std::vector<std::string> gone;
    for (const Waiter* const waiter : line_) {
      if (waiter->kept() > 0 && !waits(waiter->first())) gone.push_back(NameOf(waiter->first()));
    }
    for (const std::string& name : gone) Leave(name);
  }
  const bool is_due = scope == Scope::kAll && (!ends_at_ || now - *ends_at_ >= kBetweenScans);
  if (is_due && ends_at_) {
    for (auto& [node, on] : reserved_) on.waiter->idle += (now - *ends_at_) * on.on.awaiting.gpus;
  }
  if (is_due && !line_.empty()) {
    ends_ =
        PodEnds(*snapshot_, time.wall, learned_ == nullptr ? nullptr : learned_->Newest(), jobs_);
    ends_at_ = now;
  }
  ChooseGatherer(now, scope);
  for (const NodeIndex node : changed_) Rebuild(node, now);
  if (is_due) {
    Reserve(limits, time);
  } else {
    RenewReserved(limits);
  }
  for (const NodeIndex node : changed_) Offer(node, limits, now, waits);
  released_.clear();
  if (scope == Scope::kAll) LookEverywhere(limits, now, waits);
  Await(limits, now, scope);
  changed_.clear();
  for (Waiter* const waiter : line_) {
    const bool awaits = waiter == gatherer_ && !awaited_.empty();
    if (waiter->offered && waiter->kept() == 0 && !awaits) waiter->offered.reset();
  }
  if (is_new_ || std::exchange(is_other_line_, false)) ListAhead();
  if (std::exchange(is_new_, false)) Publish();
  return std::exchange(wakes_, {});
}

bool EarmarkLine::MayReserveFor(const Waiter& waiter, const EarmarkLimits& limits,
                                const Time& time) const {
  if (limits.reserve_after == Duration::zero()) return false;
  if (waiter.is_gang() || waiter.nodes.front() != kNoNode) return false;
  return waiter.first().shape.wants_several_gpus() && time.now >= waiter.passed_over &&
         time.wall - waiter.since >= limits.reserve_after;
}

bool EarmarkLine::LeavesReserved(NodeIndex node, const Waiter& waiter) const {
  const auto found = reserved_.find(node);
  if (found == reserved_.end() || found->second.waiter == &waiter) return true;
  if (waiter.reserved != kNoNode && Order()(&waiter, found->second.waiter)) return true;
  return LeavesAwaited(found->second.on, waiter.first(), ends_);
}

void EarmarkLine::Unreserve(Waiter& waiter) {
  const NodeIndex node = std::exchange(waiter.reserved, kNoNode);
  if (node == kNoNode) return;
  reserved_.erase(node);
  reserved_gpus_ -= GpusOf(waiter.first().shape);
  released_.insert(node);
  changed_.insert(node);
  is_new_ = true;
}

// When the node has room for the shape, if that is soon and not too much stands idle for it.
std::optional<LaterRoom> EarmarkLine::RoomSoon(const Node& node, const RequestShape& shape,
                                               const EarmarkLimits& limits) const {
  auto room = RoomAt(node, shape, ends_);
  const bool is_soon = room && room->at - ends_.now() <= limits.reserve_within &&
                       room->idle <= limits.reserve_idle * shape.gpu_count();
  return is_soon ? room : std::nullopt;
}

// Whether the pod has room there at a known time.
bool EarmarkLine::ReserveOn(Waiter& waiter, NodeIndex node, const EarmarkLimits& limits) {
  const PodRequest& pod = waiter.first();
  const Node& now = snapshot_->node(node);
  if (marked_.contains(node) || awaited_.contains(node) || IsKept(node, pod)) return false;
  if (Admits(now.spec(), pod) != Reason::kFits) return false;
  const auto room = RoomSoon(now, pod.shape, limits);
  if (!room) return false;
  const bool costs = room->idle > Duration::zero();
  if (costs && room->idle + waiter.idle > limits.reserve_idle * GpusOf(pod.shape)) return false;
  const WallTime from = room->at;
  if (const auto found = reserved_.find(node); found != reserved_.end()) {
    Reserved& known = found->second;
    known.on.idle = room->idle;
    if (known.seen == snapshot_->shared(node) && known.on.from == from) return true;
  }
  const auto ends_by = [&](const PodRecord& held) {
    const auto end = ends_.Of(held);
    return end && *end <= from;
  };
  auto then = WithPod(now.Without(ends_by), pod);
  if (then == nullptr) return false;
  Reserved reserved{&waiter, {.node = node}, snapshot_->shared(node)};
  reserved.on.awaiting = OwnerOf(pod, waiter.since);
  reserved.on.awaiting.gpus = std::min(std::popcount(IdleGpus(now)), GpusOf(pod.shape));
  reserved.on.then = std::move(then);
  reserved.on.from = from;
  reserved.on.idle = room->idle;
  reserved_.insert_or_assign(node, std::move(reserved));
  if (std::exchange(waiter.reserved, node) == kNoNode) reserved_gpus_ += GpusOf(pod.shape);
  is_new_ = true;
  return true;
}

EarmarkLine::Rooms EarmarkLine::RoomLater(const RequestShape& shape,
                                          const EarmarkLimits& limits) const {
  Rooms nodes;
  for (NodeIndex i = 0; i < snapshot_->size(); ++i) {
    if (snapshot_->node(i).healthy_gpus() < shape.gpu_count()) continue;
    const auto room = RoomSoon(snapshot_->node(i), shape, limits);
    if (room) nodes.emplace_back(room->idle, room->at, i);
  }
  std::ranges::sort(nodes);
  return nodes;
}

// For the first in line: each keeps its node as long as that has room for it at a known time, else
// has the one on which the least stands idle until it has room.
void EarmarkLine::Reserve(const EarmarkLimits& limits, const Time& time) {
  std::vector<Waiter*> waiters;
  for (Waiter* const waiter : line_) {
    const bool may =
        ends_.knows() && waiters.size() < kMostReserved && MayReserveFor(*waiter, limits, time);
    if (may) {
      waiters.push_back(waiter);
    } else {
      Unreserve(*waiter);
    }
  }
  std::map<const RequestShape*, Rooms> later;
  for (Waiter* const waiter : waiters) {
    if (waiter->reserved != kNoNode) {
      if (ReserveOn(*waiter, waiter->reserved, limits)) continue;
      Unreserve(*waiter);
    }
    const RequestShape& shape = waiter->first().shape;
    const std::int64_t others = kept_gpus_ + awaited_gpus_ + reserved_gpus_;
    if (others > 0 && (others + shape.gpu_count()) * 100 > gpus_ * limits.most_gpus) continue;
    auto found = later.find(waiter->shapes.front());
    if (found == later.end()) {
      if (later.size() >= kMostShapesLater) continue;
      found = later.try_emplace(waiter->shapes.front(), RoomLater(shape, limits)).first;
    }
    for (const auto& [idle, at, node] : found->second) {
      if (!reserved_.contains(node) && ReserveOn(*waiter, node, limits)) break;
    }
  }
  if (!reserved_.empty()) is_new_ = true;  // the time has changed
}

// Between two scans: what has changed where room is reserved.
void EarmarkLine::RenewReserved(const EarmarkLimits& limits) {
  std::vector<NodeIndex> nodes;
  for (const NodeIndex node : changed_) {
    if (reserved_.contains(node)) nodes.push_back(node);
  }
  for (const NodeIndex node : nodes) {
    Waiter& waiter = *reserved_.at(node).waiter;
    if (!ReserveOn(waiter, node, limits)) Unreserve(waiter);
  }
}

void EarmarkLine::Publish() {
  std::map<NodeIndex, Earmarks::OnNode> nodes;
  for (const auto& [index, mark] : marked_) {
    Earmarks::OnNode on{.node = index, .owners = {}, .as_if = mark.as_if};
    for (const auto& [waiter, pod] : mark.owners) {
      const PodRequest& request = *waiter->pods[pod];
      const bool same_gang =
          !on.owners.empty() && waiter->is_gang() && on.owners.back().gang == request.gang.id;
      if (!same_gang) on.owners.push_back(OwnerOf(request, waiter->since));
      on.owners.back().gpus += GpusOf(request.shape);
      on.pods.push_back(waiter->pods[pod]);
    }
    nodes.emplace(index, std::move(on));
  }
  for (const auto& [index, awaited] : awaited_) {
    Earmarks::OnNode& on = nodes.try_emplace(index, Earmarks::OnNode{.node = index}).first->second;
    on.awaiting = OwnerOf(gatherer_->first(), gatherer_->since);
    const Node& now = on.as_if != nullptr ? *on.as_if : snapshot_->node(index);
    const Later later = LaterOn(now, ends_);
    on.awaiting.gpus = later.gpus - later.busy;
    on.then = awaited.then;
    if (awaited_from_ != WallTime::max()) on.from = awaited_from_;
  }
  for (const auto& [index, reserved] : reserved_) {
    Earmarks::OnNode& on = nodes.try_emplace(index, Earmarks::OnNode{.node = index}).first->second;
    on.awaiting = reserved.on.awaiting;
    on.then = reserved.on.then;
    on.from = reserved.on.from;
    on.idle = reserved.on.idle;
  }
  std::vector<Earmarks::OnNode> sorted;
  for (auto& [index, on] : nodes) sorted.push_back(std::move(on));
  earmarks_ = std::make_shared<const Earmarks>(snapshot_, std::move(sorted), ends_);
}

}  // namespace berth
