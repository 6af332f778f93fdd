// SPDX-License-Identifier: Apache-2.0
//
// What the line knows of evictions: those that kube-scheduler makes for pods in line, and the nodes
// that Berth keeps for pods that it moves or evicts others for.
#include <algorithm>
#include <utility>

#include "scoring/earmarks/earmark_line.h"

namespace berth {

void EarmarkLine::Agree(std::string_view uid, std::vector<Agreed> nodes, Instant now) {
  const auto found = by_name_.find(std::string(uid));
  if (found == by_name_.end() || found->second->is_gang()) return;
  Waiter& waiter = *found->second;
  ForgetAgreed(waiter);
  waiter.agreed_at = now;
  for (Agreed& agreed : nodes) {
    const bool is_full = agreed_victims_ + agreed.victims.size() > kMostVictims;
    if (is_full || waiter.agreed.size() == kMostAgreed) break;
    agreed_victims_ += agreed.victims.size();
    const NodeIndex node = snapshot_->names().Find(agreed.node);
    if (node != kNoNode) agreed_.emplace(node, &waiter);
    waiter.agreed.push_back(std::move(agreed));
  }
}

void EarmarkLine::ForgetAgreed(Waiter& waiter) {
  if (waiter.agreed.empty()) return;
  for (const Agreed& agreed : waiter.agreed) agreed_victims_ -= agreed.victims.size();
  waiter.agreed.clear();
  std::erase_if(agreed_, [&waiter](const auto& on) { return on.second == &waiter; });
}

void EarmarkLine::IndexAgreed() {
  agreed_.clear();
  for (Waiter* const waiter : line_) {
    for (const Agreed& agreed : waiter->agreed) {
      const NodeIndex node = snapshot_->names().Find(agreed.node);
      if (node != kNoNode) agreed_.emplace(node, waiter);
    }
  }
}

// kube-scheduler says by its deeds which of the nodes it chose: a victim there leaves.
void EarmarkLine::Nominate(Instant now) {
  if (agreed_.empty()) return;
  const std::vector<NodeIndex> changed(changed_.begin(), changed_.end());
  for (const NodeIndex index : changed) {
    const Node& node = snapshot_->node(index);
    const auto leaves = [&node](const std::string& uid) {
      const PodRecord* const held = node.FindPod(uid);
      return held == nullptr || held->leaving;
    };
    const auto [first, last] = agreed_.equal_range(index);
    std::vector<Waiter*> waiters;
    for (auto on = first; on != last; ++on) waiters.push_back(on->second);
    const auto agreed_here = [&node](const Waiter* waiter) {
      return std::ranges::find(waiter->agreed, node.spec().name, &Agreed::node);
    };
    std::erase_if(waiters, [&](const Waiter* waiter) {
      const auto agreed = agreed_here(waiter);
      const bool is_old = now - waiter->agreed_at >= kOffer;
      return is_old || agreed == waiter->agreed.end() ||
             std::ranges::none_of(agreed->victims, leaves);
    });
    std::ranges::sort(waiters, Order());
    LeaveShown(index, waiters);
    for (Waiter* const waiter : waiters) {
      NominateOn(*waiter, index, agreed_here(waiter)->victims, now);
    }
  }
}

void EarmarkLine::LeaveShown(NodeIndex node, std::vector<Waiter*>& waiters) {
  if (!nominated_) return;
  const std::string_view name = snapshot_->names().name(node);
  std::vector<Waiter*> shown, unknown;
  for (Waiter* const waiter : waiters) {
    const std::string to = nominated_(waiter->first());
    if (to == name) shown.push_back(waiter);
    if (to.empty()) unknown.push_back(waiter);
  }
  const bool is_shown = !shown.empty();
  waiters = is_shown ? std::move(shown) : std::move(unknown);
  const auto mark = marked_.find(node);
  if (mark == marked_.end()) return;
  std::vector<Waiter*> wrong;
  for (const auto& [waiter, pod] : mark->second.owners) {
    if (!waiter->nominated) continue;
    const std::string to = nominated_(waiter->first());
    if (to != name && (is_shown || !to.empty())) wrong.push_back(waiter);
  }
  if (wrong.empty()) return;
  for (Waiter* const waiter : wrong) Release(*waiter);
  mark->second.leaving.clear();
  for (const auto& [waiter, pod] : mark->second.owners) {
    if (!waiter->nominated) continue;
    const auto agreed = std::ranges::find(waiter->agreed, name, &Agreed::node);
    if (agreed == waiter->agreed.end()) continue;
    mark->second.leaving.insert(mark->second.leaving.end(), agreed->victims.begin(),
                                agreed->victims.end());
  }
}

void EarmarkLine::NominateOn(Waiter& waiter, NodeIndex node,
                             const std::vector<std::string>& victims, Instant now) {
  if (waiter.nodes.front() == node) return;
  if (waiter.nominated && waiter.offered) return;  // all have gone where it was nominated first
  Release(waiter);
  Marked& mark = marked_[node];  // Rebuild puts the pod there: the node has changed
  // Before a gang that could evict it, too: it goes there in any case.
  const auto lower = std::ranges::find_if(mark.owners, [&waiter](const auto& owner) {
    const PodRequest& other = owner.first->first();
    return GoesBefore(waiter.first(),
                      {other.id, other.gang.id, other.priority, other.may_preempt, {}, 0});
  });
  mark.owners.emplace(lower, &waiter, 0);
  mark.leaving.insert(mark.leaving.end(), victims.begin(), victims.end());
  waiter.nodes.front() = node;
  waiter.nominated = now;
  waiter.passed_over = {};
  kept_gpus_ += GpusOf(waiter.first().shape);
  is_new_ = true;
}

// A victim that ended by itself looks like one that was evicted; the others stay then.
bool EarmarkLine::IsInVain(const Waiter& waiter, Instant now) const {
  if (!waiter.nominated || waiter.offered || now - *waiter.nominated < kOffer) return false;
  const auto mark = marked_.find(waiter.nodes.front());
  if (mark == marked_.end()) return false;
  return std::ranges::none_of(mark->second.leaving, [&](const std::string& uid) {
    const PodRecord* const held = snapshot_->node(mark->first).FindPod(uid);
    return held != nullptr && held->leaving;
  });
}

void EarmarkLine::TakeUpKept(std::shared_ptr<const KeptNodes> kept) {
  if (kept == kept_) return;
  const auto note_changes = [this](const KeptNodes* one, const KeptNodes* other) {
    if (one == nullptr) return;
    for (const auto& [name, node] : *one) {
      const auto same = other == nullptr ? one->end() : other->find(name);
      if (other != nullptr && same != other->end() && same->second == node) continue;
      const NodeIndex index = snapshot_->names().Find(name);
      if (index == kNoNode) continue;
      changed_.insert(index);
      released_.insert(index);
    }
  };
  note_changes(kept_.get(), kept.get());
  note_changes(kept.get(), kept_.get());
  kept_ = std::move(kept);
}

bool EarmarkLine::IsKept(NodeIndex node, const PodRequest& pod) const {
  return kept_ != nullptr &&
         KeptNodeFrom(kept_.get(), snapshot_->names().name(node), pod) != nullptr;
}

void EarmarkLine::ListAhead() {
  auto ahead = std::make_shared<PodsInLine>();
  for (const Waiter* const waiter : line_) {
    if (waiter->is_gang() || waiter->kept() > 0) continue;
    ahead->push_back({waiter->pods.front(), waiter->passed_over});
  }
  ahead_ = std::move(ahead);
}

}  // namespace berth
