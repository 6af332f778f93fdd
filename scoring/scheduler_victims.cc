// SPDX-License-Identifier: Apache-2.0
#include "scoring/victims.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "cluster/node/gpu_division.h"
#include "scoring/admission.h"
#include "scoring/explain/other_limits.h"
#include "scoring/registry.h"

namespace berth {
namespace {

using Pods = std::vector<const PodRecord*>;

// Of CPU, memory, ephemeral storage, whole GPUs.
using Amounts = std::array<std::int64_t, 4>;

// What is not tracked stays so.
Amounts Plus(const Amounts& a, const Amounts& b, std::int64_t sign) {
  Amounts sum = a;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    if (sum[i] != Node::kNotTracked) sum[i] += sign * b[i];
  }
  return sum;
}

// Whether the node offers its GPUs, or what stands for them, by one resource and as they are.
bool OffersWhole(const NodeSpec& spec) {
  return spec.share_agent.empty() && (!spec.gpus.empty() || spec.places.count > 0);
}

Amounts AskedOf(const NodeSpec& spec, const RequestShape& shape) {
  return {shape.cpu_milli, shape.memory_bytes, shape.ephemeral_bytes, GpusCountedFor(spec, shape)};
}

Amounts CountedOf(const NodeSpec& spec, const PodRecord& held) {
  const Placement& has = held.placement;
  return {has.cpu_milli, has.memory_bytes, has.ephemeral_bytes,
          GpusCountedFor(spec, held.pod.shape)};
}

// The most important first. A pod that has not started is taken for one that starts now.
std::int64_t StartOf(const PodRecord& held) {
  return held.life.started ? held.life.started->time_since_epoch().count()
                           : std::numeric_limits<std::int64_t>::max();
}

Pods LowerOnes(const Node& node, int priority) {
  Pods lower;
  for (const auto& held : node.pods()) {
    // What is only planned kube-scheduler does not know.
    if (held->state != PodState::kPlanned && held->pod.priority < priority) {
      lower.push_back(held.get());
    }
  }
  std::ranges::stable_sort(lower, {}, [](const PodRecord* held) {
    return std::pair(-std::int64_t{held->pod.priority}, StartOf(*held));
  });
  return lower;
}

bool IsCoveredFor(const PodDisruptionBudget& budget, const PodRequest& pod) {
  const bool has_labels = pod.labels != nullptr && !pod.labels->empty();
  return has_labels && budget.selector && !budget.selector->empty() && budget.Covers(pod);
}

// Moves those to the front whose eviction exceeds a budget. Returns how many these are.
std::size_t PutExceedingFirst(Pods& pods, std::span<const PodDisruptionBudget> budgets) {
  std::vector<int> left;
  for (const PodDisruptionBudget& budget : budgets) left.push_back(budget.disruptions_allowed);
  Pods exceeding, others;
  for (const PodRecord* held : pods) {
    bool exceeds = false;
    for (std::size_t b = 0; b < budgets.size() && !exceeds; ++b) {
      if (IsCoveredFor(budgets[b], held->pod)) exceeds = --left[b] < 0;
    }
    (exceeds ? exceeding : others).push_back(held);
  }
  pods = exceeding;
  pods.insert(pods.end(), others.begin(), others.end());
  return exceeding.size();
}

class Reprieve {
 public:
  Reprieve(const Node& node, const PodRequest& pod)
      : node_(node), pod_(pod), asked_(AskedOf(node.spec(), pod.shape)) {
    const NodeSpec& spec = node.spec();
    const std::int64_t gpus = std::ssize(spec.gpus) + spec.places.count - spec.missing;
    free_ = {node.free_cpu_milli(), node.free_memory_bytes(), node.free_ephemeral_bytes(),
             OffersWhole(spec) ? gpus : 0};
    for (const auto& held : node.pods()) {
      const Amounts has = CountedOf(spec, *held);
      if (held->state == PodState::kPlanned) {
        free_ = Plus(free_, {has[0], has[1], has[2], 0}, 1);
      } else {
        free_[3] -= has[3];
      }
    }
  }

  void Remove(const PodRecord& held) {
    free_ = Plus(free_, CountedOf(node_.spec(), held), 1);
    gone_.push_back(&held);
  }
  void PutBack(const PodRecord& held) {
    free_ = Plus(free_, CountedOf(node_.spec(), held), -1);
    std::erase(gone_, &held);
  }
  // By kube-scheduler's count. MIG devices are counted by their profile, so that any of it will do.
  [[nodiscard]] bool Fits() const {
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (asked_[i] > 0 && asked_[i] > free_[i]) return false;
    }
    if (pod_.shape.mig() != nullptr && !berth::Fits(Left(), pod_.shape)) return false;
    return !MayLackMore() || LackOf(Left(), pod_).empty();
  }

 private:
  // Of devices of other plugins, or of the number of pods.
  [[nodiscard]] bool MayLackMore() const {
    const std::int64_t most = node_.spec().most_pods;
    return most >= 0 && (pod_.others != nullptr || std::ssize(node_.pods()) >= most);
  }
  [[nodiscard]] Node Left() const {
    return node_.Without(
        [this](const PodRecord& held) { return std::ranges::find(gone_, &held) != gone_.end(); });
  }

  const Node& node_;
  const PodRequest& pod_;
  const Amounts asked_;
  Amounts free_{};
  Pods gone_;
};

// Whether the resource of the node is its GPUs, one each.
bool CountsGpus(const NodeSpec& spec) { return !spec.gpus.empty() && spec.share_agent.empty(); }

constexpr std::int64_t kFullPoints = 100;
// Of a container that asks for none (pkg/scheduler/util/pod_resources.go).
constexpr std::int64_t kCpuMilli = 100, kMemoryBytes = std::int64_t{200} << 20;

// How much more counts for the pod than it asks for.
std::int64_t Unasked(const PodRequest& pod, std::int64_t asked, std::int64_t of_container) {
  return asked > 0 ? 0 : of_container * std::max(pod.container_count, 1);
}

}  // namespace

bool HasSchedulersRoom(const Node& node, const PodRequest& pod) {
  return Reprieve(node, pod).Fits();
}

std::optional<VictimSet> SchedulerVictims(const Node& node, const PodRequest& pod,
                                          std::span<const PodDisruptionBudget> budgets) {
  const bool is_open = node.spec().ready && Admits(node.spec(), pod) == Reason::kFits;
  if (!is_open || GetsClaimOn(node, pod)) return std::nullopt;
  Pods lower = LowerOnes(node, pod.priority);
  if (lower.empty()) return std::nullopt;
  Reprieve room(node, pod);
  if (room.Fits()) return std::nullopt;
  for (const PodRecord* held : lower) room.Remove(*held);
  if (!room.Fits()) return std::nullopt;
  const std::size_t exceeding = PutExceedingFirst(lower, budgets);
  VictimSet victims;
  for (std::size_t i = 0; i < lower.size(); ++i) {
    room.PutBack(*lower[i]);
    if (room.Fits()) continue;
    room.Remove(*lower[i]);
    victims.uids.push_back(lower[i]->pod.id.uid);
    victims.pdb_violations += i < exceeding ? 1 : 0;
  }
  if (victims.uids.empty()) return std::nullopt;
  std::ranges::sort(victims.uids);
  return victims;
}

EvictionRank RankOf(const Node& node, const VictimSet& victims) {
  constexpr std::int64_t kFromZero = std::int64_t{1} << 31;
  EvictionRank rank{.pdb_violations = victims.pdb_violations, .pods = victims.uids.size()};
  rank.highest_priority = std::numeric_limits<int>::min();
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const std::string& uid : victims.uids) {
    const PodRecord* const held = node.FindPod(uid);
    if (held == nullptr) continue;
    rank.priority_sum += held->pod.priority + kFromZero;
    if (held->pod.priority > rank.highest_priority) {
      rank.highest_priority = held->pod.priority;
      first = StartOf(*held);
    } else if (held->pod.priority == rank.highest_priority) {
      first = std::min(first, StartOf(*held));
    }
  }
  rank.before_now = -first;
  return rank;
}

std::int64_t GpusCountedFor(const NodeSpec& node, const RequestShape& shape) {
  const auto* const whole = std::get_if<WholeGpus>(&shape.gpus);
  return whole == nullptr || !node.GivesGpusAs(shape.gpu_resource) || !shape.share_agent.empty()
             ? 0
             : whole->count;
}

bool PodsAreTakenAway(const Node& node, const PodRequest& pod, std::int64_t given) {
  const NodeSpec& spec = node.spec();
  const std::int64_t wanted = GpusCountedFor(spec, pod.shape);
  if (wanted == 0 || !CountsGpus(spec) || node.lowest_priority() >= pod.priority) return false;
  std::int64_t free = std::ssize(spec.gpus) - spec.missing - given;
  for (const auto& held : node.pods()) {
    if (held->state == PodState::kBound) free -= GpusCountedFor(spec, held->pod.shape);
  }
  return wanted > free;
}

bool AnyEvictionsWillDo(const Node& node, const PodRequest& pod) {
  const NodeSpec& spec = node.spec();
  const bool is_limited =
      KubeletLimits(spec, pod.shape) && spec.topology_manager.policy != TopologyPolicy::kBestEffort;
  const bool is_fussy = pod.shape.links.limits() || !pod.shape.gpu_rules.empty() || is_limited;
  const bool is_known = std::ranges::all_of(spec.gpus, &GpuSpec::healthy) && node.claimed() == 0;
  if (is_fussy || !is_known || !CountsGpus(spec)) return false;
  return std::ranges::all_of(node.pods(), [&](const auto& held) {
    const bool is_of_its_gang = !pod.gang.empty() && held->pod.gang.id == pod.gang.id;
    if (is_of_its_gang || !held->pod.shape.wants_gpu()) return true;
    return held->state != PodState::kPlanned && GpusCountedFor(spec, held->pod.shape) > 0;
  });
}

std::int64_t ResourceUse::free_points() const {
  if (allocatable <= 0 || requested > allocatable) return 0;
  return (allocatable - requested) * kFullPoints / allocatable;
}

double ResourceUse::part() const {
  if (allocatable <= 0) return 1;
  return std::min(static_cast<double>(requested) / static_cast<double>(allocatable), 1.0);
}

ResourceUse CpuUse(const Node& node, const RequestShape& pod) {
  const std::int64_t all = node.spec().cpu_milli;
  return {all - node.free_cpu_milli() + pod.cpu_milli, all};
}

ResourceUse MemoryUse(const Node& node, const RequestShape& pod) {
  const std::int64_t all = node.spec().memory_bytes;
  return {all - node.free_memory_bytes() + pod.memory_bytes, all};
}

std::int64_t BalancePoints(const ResourceUse& cpu, const ResourceUse& memory) {
  const double deviation = std::abs(cpu.part() - memory.part()) / 2;
  return static_cast<std::int64_t>((1 - deviation) * static_cast<double>(kFullPoints));
}

std::int64_t SchedulerScore(const Node& node, const PodRequest& pod) {
  const ResourceUse cpu = CpuUse(node, pod.shape), memory = MemoryUse(node, pod.shape);
  ResourceUse counted_cpu = cpu, counted_memory = memory;
  const auto count = [&](const PodRequest& of) {
    counted_cpu.requested += Unasked(of, of.shape.cpu_milli, kCpuMilli);
    counted_memory.requested += Unasked(of, of.shape.memory_bytes, kMemoryBytes);
  };
  count(pod);
  for (const auto& record : node.pods()) count(record->pod);
  return (counted_cpu.free_points() + counted_memory.free_points()) / 2 +
         BalancePoints(cpu, memory);
}

}  // namespace berth
