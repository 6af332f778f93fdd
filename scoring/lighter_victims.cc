// SPDX-License-Identifier: Apache-2.0
#include "scoring/victims.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "scoring/registry.h"

namespace berth {
namespace {

// Bounds of the search on one node; a request may name some hundreds.
constexpr int kMostSets = 1 << 14;  // sets that are looked at
constexpr int kMostJudged = 256;    // of these, judged by the filters: some microseconds each

using Pods = std::vector<const PodRecord*>;

struct Candidate {
  const PodRecord* pod = nullptr;
  std::int64_t lost = 0;
};

// What evicting pods frees, or a pod asks for.
struct Room {
  std::int64_t cpu_milli = 0, memory_bytes = 0, ephemeral_bytes = 0, gpu_milli = 0;
  Room& operator+=(const Room& other) {
    cpu_milli += other.cpu_milli;
    memory_bytes += other.memory_bytes;
    ephemeral_bytes += other.ephemeral_bytes;
    gpu_milli += other.gpu_milli;
    return *this;
  }
  [[nodiscard]] bool Covers(const Room& need) const {
    return cpu_milli >= need.cpu_milli && memory_bytes >= need.memory_bytes &&
           ephemeral_bytes >= need.ephemeral_bytes && gpu_milli >= need.gpu_milli;
  }
};

Room RoomOf(const PodRecord& held) {
  return {held.placement.cpu_milli, held.placement.memory_bytes, held.placement.ephemeral_bytes,
          GpuMilliOf(held)};
}

Room Larger(const Room& a, const Room& b) {
  return {std::max(a.cpu_milli, b.cpu_milli), std::max(a.memory_bytes, b.memory_bytes),
          std::max(a.ephemeral_bytes, b.ephemeral_bytes), std::max(a.gpu_milli, b.gpu_milli)};
}

// What has to come free for the pod at least. What it does not ask for may be taken beyond all
// there is: pods are bound past everybody.
Room Lacking(const Node& node, const RequestShape& shape) {
  const auto lacking = [](std::int64_t asked, std::int64_t free) {
    return asked == 0 ? 0 : asked - free;
  };
  Room need{lacking(shape.cpu_milli, node.free_cpu_milli()),
            lacking(shape.memory_bytes, node.free_memory_bytes()),
            lacking(shape.ephemeral_bytes, node.free_ephemeral_bytes()),
            std::int64_t{shape.gpu_count()} * kMilliPerGpu};
  for (const GpuFree& gpu : node.gpus()) need.gpu_milli -= std::max(gpu.milli, 0);
  return need;
}

// How many of the pods kube-scheduler would say exceed a budget, the most important first.
std::int64_t Exceeding(Pods pods, std::span<const PodDisruptionBudget> budgets) {
  if (budgets.empty()) return 0;
  std::ranges::sort(pods, std::greater<>(),
                    [](const PodRecord* held) { return held->pod.priority; });
  std::vector<int> left;
  for (const PodDisruptionBudget& budget : budgets) left.push_back(budget.disruptions_allowed);
  std::int64_t exceeding = 0;
  for (const PodRecord* held : pods) {
    bool exceeds = false;
    for (std::size_t b = 0; b < budgets.size(); ++b) {
      if (budgets[b].Covers(held->pod)) exceeds = --left[b] < 0 || exceeds;
    }
    exceeding += exceeds ? 1 : 0;
  }
  return exceeding;
}

std::vector<int> PrioritiesOf(const Pods& pods) {
  std::vector<int> priorities;
  for (const PodRecord* held : pods) priorities.push_back(held->pod.priority);
  std::ranges::sort(priorities, std::greater<>());
  return priorities;
}

// Whether the pod may stay though it was to go, for what Berth does not judge.
bool MayStay(const PodRecord& held, const PodRequest& pod) {
  const OwnToScheduler& his = held.pod.own_to_scheduler;
  const OwnToScheduler& asks = pod.own_to_scheduler;
  return !his.keeps_apart && !(his.host_ports && asks.host_ports) &&
         !(his.volumes && asks.volumes) && !(his.resources && asks.resources);
}

class LighterSearch {
 public:
  LighterSearch(const Node& node, const PodRequest& pod, const EvictionLimits& limits)
      : node_(node), pod_(pod), limits_(limits) {}

  std::optional<VictimSet> Instead(const VictimSet& proposed) {
    if (!IsJudgedHere() || !Take(proposed) || !FindCandidates() || !AllAreNeeded()) {
      return std::nullopt;
    }
    Room room;
    for (const PodRecord* held : chosen_) room += RoomOf(*held);
    Extend(0, room, lost_);
    if (!best_) return std::nullopt;
    VictimSet set;
    for (const PodRecord* held : *best_) set.uids.push_back(held->pod.id.uid);
    std::ranges::sort(set.uids);
    const std::int64_t fewer = exceeding_ - Exceeding(*best_, limits_.budgets);
    set.pdb_violations = std::max<std::int64_t>(proposed.pdb_violations - fewer, 0);
    return set;
  }

  std::optional<VictimSet> Whole(const VictimSet& proposed) {
    if (!IsJudgedHere() || !Take(proposed) || !AllAreNeeded()) return std::nullopt;
    VictimSet set{{}, proposed.pdb_violations};
    for (const PodRecord* held : proposed_) {
      if (held->pod.gang.empty()) {
        set.uids.push_back(held->pod.id.uid);
      } else if (!MayStay(*held, pod_)) {
        return std::nullopt;
      }
    }
    const auto added = AddedVictims(node_, pod_, set.uids, limits_);
    if (!added) return std::nullopt;
    set.uids.insert(set.uids.end(), added->begin(), added->end());
    std::ranges::sort(set.uids);
    return set;
  }

 private:
  // Whether Berth judges the GPUs of the node as kube-scheduler does, one by one, knows who has
  // which, and nothing that the pod asks for depends on which other pods there are.
  [[nodiscard]] bool IsJudgedHere() const {
    const OwnToScheduler& asks = pod_.own_to_scheduler;
    return std::holds_alternative<WholeGpus>(pod_.shape.gpus) && !asks.keeps_apart &&
           !asks.minds_others && !node_.spec().gives_parts() && node_.spec().share_agent.empty() &&
           node_.unattributed() == 0;
  }

  bool Take(const VictimSet& proposed) {
    for (const std::string& uid : proposed.uids) {
      const PodRecord* const held = node_.FindPod(uid);
      if (held == nullptr || held->leaving || held->state != PodState::kBound ||
          held->pod.priority >= pod_.priority) {
        return false;
      }
      if (std::ranges::find(proposed_, held) != proposed_.end()) continue;
      proposed_.push_back(held);
      best_lost_ += WorkLost(*held, limits_.now);
    }
    priorities_ = PrioritiesOf(proposed_);
    exceeding_ = Exceeding(proposed_, limits_.budgets);
    return !proposed_.empty();
  }

  // False: there is none that loses less than those that may stay together.
  bool FindCandidates() {
    for (const PodRecord* held : proposed_) {
      const std::int64_t lost = WorkLost(*held, limits_.now);
      if (MayStay(*held, pod_)) {
        candidates_.push_back({held, lost});
      } else {
        chosen_.push_back(held);
        lost_ += lost;
      }
    }
    bool some = false;
    for (const auto& held : node_.pods()) {
      if (!MayBeChosen(*held)) continue;
      candidates_.push_back({held.get(), WorkLost(*held, limits_.now)});
      some = some || lost_ + candidates_.back().lost < best_lost_;
    }
    std::ranges::sort(candidates_, {}, [](const Candidate& candidate) {
      return std::pair<std::int64_t, std::string_view>(candidate.lost, candidate.pod->pod.id.uid);
    });
    for (const Candidate& candidate : candidates_) {
      largest_ = Larger(largest_, RoomOf(*candidate.pod));
    }
    return some;
  }

  [[nodiscard]] bool MayBeChosen(const PodRecord& held) const {
    return held.state == PodState::kBound && !held.leaving && held.pod.gang.empty() &&
           held.pod.shape.wants_gpu() && held.pod.priority <= priorities_.front() &&
           std::ranges::find(proposed_, &held) == proposed_.end();
  }

  [[nodiscard]] bool AllAreNeeded() const {
    if (!Fits(WithoutPods(node_, proposed_), pod_.shape)) return false;
    return std::ranges::none_of(proposed_, [this](const PodRecord* held) {
      Pods others = proposed_;
      std::erase(others, held);
      return Fits(WithoutPods(node_, others), pod_.shape);
    });
  }

  [[nodiscard]] bool IsNoWorse(const Pods& pods) const {
    const std::vector<int> priorities = PrioritiesOf(pods);
    for (std::size_t i = 0; i < priorities.size(); ++i) {
      if (priorities[i] > priorities_[i]) return false;
    }
    return Exceeding(pods, limits_.budgets) <= exceeding_;
  }

  // The chosen pods and those of the candidates from `from` on. Whatever is added to a set makes it
  // no lighter, and no better by what IsNoWorse asks.
  void Extend(std::size_t from, const Room& room, std::int64_t lost) {
    if (++steps_ > kMostSets || judged_ > kMostJudged) return;
    const bool is_lighter =
        best_ ? lost < best_lost_ || (lost == best_lost_ && chosen_.size() < best_->size())
              : lost < best_lost_;
    if (!is_lighter || !IsNoWorse(chosen_)) return;
    if (!chosen_.empty() && room.Covers(need_)) {
      ++judged_;
      if (Fits(WithoutPods(node_, chosen_), pod_.shape)) {
        best_ = chosen_;
        best_lost_ = lost;
        return;
      }
    }
    const std::size_t more = proposed_.size() - chosen_.size();
    Room most = room;
    for (std::size_t i = 0; i < more; ++i) most += largest_;
    if (more == 0 || !most.Covers(need_)) return;
    for (std::size_t i = from; i < candidates_.size(); ++i) {
      Room with = room;
      chosen_.push_back(candidates_[i].pod);
      Extend(i + 1, with += RoomOf(*candidates_[i].pod), lost + candidates_[i].lost);
      chosen_.pop_back();
    }
  }

  const Node& node_;
  const PodRequest& pod_;
  const EvictionLimits& limits_;
  const Room need_ = Lacking(node_, pod_.shape);
  Pods proposed_;
  std::vector<int> priorities_;  // theirs, the highest first
  std::int64_t exceeding_ = 0;
  std::vector<Candidate> candidates_;  // the lightest first
  Room largest_;                       // that one of them frees, of each
  Pods chosen_;                        // at first those that have to go in any case
  std::int64_t lost_ = 0;              // of these
  std::optional<Pods> best_;
  std::int64_t best_lost_ = 0;  // at first of the proposed ones
  int steps_ = 0, judged_ = 0;
};

}  // namespace

std::optional<VictimSet> LighterVictims(const Node& node, const PodRequest& pod,
                                        const VictimSet& proposed, const EvictionLimits& limits) {
  return LighterSearch(node, pod, limits).Instead(proposed);
}

std::optional<VictimSet> WholeGangVictims(const Node& node, const PodRequest& pod,
                                          const VictimSet& proposed, const EvictionLimits& limits) {
  return LighterSearch(node, pod, limits).Whole(proposed);
}

}  // namespace berth
