// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/preemption_outlook.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "scoring/admission.h"
#include "scoring/devices/device_picker.h"
#include "scoring/explain/first_line.h"
#include "scoring/explain/node_report.h"
#include "scoring/registry.h"
#include "scoring/room/room_nodes.h"
#include "scoring/victims.h"

namespace berth {
namespace {

constexpr std::size_t kMostLate = 64;  // nodes on which Berth's own victims are searched for

// A node with the victims that kube-scheduler proposes, or Berth has agreed to.
struct Eviction {
  EvictionRank rank;
  NodeIndex node = kNoNode;
  VictimSet victims;
};

bool ComesFirst(const Eviction& a, const Eviction& b) {
  return std::pair(a.rank, a.node) < std::pair(b.rank, b.node);
}

std::string SecondsText(std::chrono::seconds time) {
  constexpr std::chrono::seconds kLong = std::chrono::minutes(2);
  if (time < kLong) return std::to_string(time.count()) + " s";
  return std::to_string(std::chrono::ceil<std::chrono::minutes>(time).count()) + " min";
}

// "team/low on n1 has 35 s to end", "3 pods on n1 have 35 s to end".
std::string EndingText(std::span<const PodRecord* const> pods, const std::string& node,
                       WallTime now) {
  std::optional<WallTime> last;
  for (const PodRecord* const held : pods) {
    if (held->life.ends) last = std::max(last.value_or(*held->life.ends), *held->life.ends);
  }
  const bool one = pods.size() == 1;
  const std::string who = one ? pods.front()->pod.id.full_name() : CountText(pods.size(), "pod");
  const auto left =
      last ? std::chrono::ceil<std::chrono::seconds>(*last - now) : std::chrono::seconds(0);
  const std::string on = who + " on " + node;
  if (left.count() <= 0) return on + (one ? " is ending" : " are ending");
  return on + (one ? " has " : " have ") + SecondsText(left) + " to end";
}

class Search {
 public:
  explicit Search(const PreemptionAsk& ask) : ask_(ask) {}

  [[nodiscard]] PreemptionOutlook Find() const {
    if (!ask_.pod.may_preempt) return {.text = "the pod's preemptionPolicy is Never"};
    if (auto under_way = UnderWay()) return *std::move(under_way);
    const std::vector<Eviction> proposed = Proposed();
    std::size_t asked = 0;
    if (const auto best = BestOf(proposed, asked, false)) return Helps(*best);
    const auto breaking = BestOf(proposed, asked, true);
    if (breaking && ask_.limits.gangs_may_break) return Helps(*breaking);
    if (auto late = OnlyBerthSees()) return *std::move(late);
    if (breaking) {
      return {.text =
                  "evicting pods of lower priority would leave a part of a gang on every node "
                  "where it would do; gangs.mayBreak is false"};
    }
    if (asked < proposed.size()) {
      return {.text = "no node was found where evicting pods of lower priority would do (" +
                      std::to_string(asked) + " of " + std::to_string(proposed.size()) +
                      " nodes tried)"};
    }
    return {.text = AnyLower()
                        ? "no node was found where evicting pods of lower priority would do"
                        : "no pod has a priority below " + std::to_string(ask_.pod.priority)};
  }

 private:
  [[nodiscard]] const Node& NodeAt(NodeIndex index) const { return ask_.snapshot.node(index); }

  [[nodiscard]] bool AnyLower() const {
    for (NodeIndex i = 0; i < ask_.snapshot.size(); ++i) {
      if (NodeAt(i).lowest_priority() < ask_.pod.priority) return true;
    }
    return false;
  }

  // It preempts for one node at a time: while pods end there, it evicts no others.
  [[nodiscard]] std::optional<PreemptionOutlook> UnderWay() const {
    const NodeIndex index =
        ask_.nominated.empty() ? kNoNode : ask_.snapshot.names().Find(ask_.nominated);
    // Where the pod cannot go any more, kube-scheduler preempts anew.
    if (index == kNoNode || !NodeAt(index).spec().ready ||
        Admits(NodeAt(index).spec(), ask_.pod) != Reason::kFits) {
      return std::nullopt;
    }
    std::vector<const PodRecord*> ending;
    for (const auto& held : NodeAt(index).pods()) {
      if (held->leaving && held->pod.priority < ask_.pod.priority) ending.push_back(held.get());
    }
    if (ending.empty()) return std::nullopt;
    PreemptionOutlook outlook{.helps = true, .under_way = true};
    outlook.node = NodeAt(index).spec().name;
    for (const PodRecord* held : ending) outlook.victims.push_back(held->pod.id.full_name());
    outlook.text = "under way: " + EndingText(ending, outlook.node, ask_.limits.now);
    outlook.brief = "preemption is " + outlook.text;
    return outlook;
  }

  [[nodiscard]] std::vector<Eviction> Proposed() const {
    std::vector<Eviction> proposed;
    for (NodeIndex i = 0; i < ask_.snapshot.size(); ++i) {
      auto victims = SchedulerVictims(NodeAt(i), ask_.pod, ask_.limits.budgets);
      if (!victims) continue;
      const EvictionRank rank = RankOf(NodeAt(i), *victims);
      proposed.push_back({rank, i, *std::move(victims)});
    }
    std::ranges::sort(proposed, ComesFirst);
    return proposed;
  }

  // asked: how many of them Berth was asked about.
  [[nodiscard]] std::optional<Eviction> BestOf(std::span<const Eviction> proposed,
                                               std::size_t& asked, bool breaks_gangs) const {
    std::optional<Eviction> best;
    asked = 0;
    for (const Eviction& candidate : proposed) {
      if (asked >= (best ? kMostCompared : kMostAsked)) break;
      ++asked;
      auto agreed = AgreedVictims(ask_.snapshot, ask_.pod, ask_.group, candidate.node,
                                  candidate.victims, ask_.limits, ask_.reservations, breaks_gangs);
      if (!agreed) continue;
      const EvictionRank rank = RankOf(NodeAt(candidate.node), *agreed);
      Eviction found{rank, candidate.node, *std::move(agreed)};
      if (!best || ComesFirst(found, *best)) best = std::move(found);
    }
    return best;
  }

  [[nodiscard]] std::vector<std::string> NamesOf(NodeIndex index,
                                                 std::span<const std::string> uids) const {
    std::vector<std::string> names;
    for (const std::string& uid : uids) {
      if (const PodRecord* const held = NodeAt(index).FindPod(uid)) {
        names.push_back(held->pod.id.full_name());
      }
    }
    std::ranges::sort(names);
    return names;
  }

  [[nodiscard]] PreemptionOutlook Helps(const Eviction& best) const {
    PreemptionOutlook outlook{.helps = true};
    outlook.node = NodeAt(best.node).spec().name;
    outlook.victims = NamesOf(best.node, best.victims.uids);
    outlook.text = "its priority " + std::to_string(ask_.pod.priority) +
                   " lets it preempt pods, for example on " + outlook.node + ": " +
                   Join(outlook.victims, " ");
    if (const std::int64_t beyond = best.victims.pdb_violations; beyond > 0) {
      outlook.text += "; " + std::to_string(beyond) + " of them beyond a PodDisruptionBudget";
    }
    if (ask_.pod.own_to_scheduler != OwnToScheduler{}) {
      outlook.text += "; ports, volumes, spread and pod affinity are not judged";
    }
    const auto count = static_cast<std::int64_t>(outlook.victims.size());
    outlook.brief = "kube-scheduler can evict " +
                    (count == 1 ? ShortName(outlook.victims.front(), 2 * kShortName)
                                : CountText(count, "pod")) +
                    " on " + ShortName(outlook.node, 2 * kShortName) + " for it";
    return outlook;
  }

  // Where its own count has room, kube-scheduler up to 1.37 finds no victim and does not ask.
  [[nodiscard]] std::optional<PreemptionOutlook> OnlyBerthSees() const {
    std::size_t tries = 0;
    for (NodeIndex i = 0; i < ask_.snapshot.size() && tries < kMostLate; ++i) {
      const bool is_full = !HasSchedulersRoom(NodeAt(i), ask_.pod);
      if (is_full || NodeAt(i).lowest_priority() >= ask_.pod.priority) continue;
      ++tries;
      const auto victims =
          VictimsOn(ask_.snapshot, ask_.pod, ask_.group, i, {}, ask_.limits, ask_.reservations);
      if (!victims || victims->empty()) continue;
      const std::string names = Join(NamesOf(i, *victims), " ");
      return PreemptionOutlook{
          .text =
              "kube-scheduler evicts nobody where its own count has room, before version 1.38: "
              "the pod would fit " +
              NodeAt(i).spec().name + " without " + names};
    }
    return std::nullopt;
  }

  const PreemptionAsk& ask_;
};

using Pod = const PodRecord*;
using Pods = std::vector<Pod>;

// How much of what is missing the pod holds: 1 for all of one kind.
double CoverageOf(const Amounts& held, const Amounts& missing) {
  double worth = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (missing[i] == 0) continue;
    worth += static_cast<double>(std::min(held[i], missing[i])) / static_cast<double>(missing[i]);
  }
  return worth;
}

bool MayEndForGood(const PodRecord& pod) {
  return pod.state != PodState::kPlanned && !pod.life.comes_back;
}

// Those that are ending first, then those that end by themselves, then the smallest.
Pods RunningOn(const Node& node) {
  Pods pods;
  for (const auto& pod : node.pods()) {
    if (MayEndForGood(*pod)) pods.push_back(pod.get());
  }
  const auto size = [](Pod pod) {
    std::int64_t milli = 0;
    for (const DeviceGrant& grant : pod->placement.grants) milli += grant.milli;
    return std::tuple(!pod->leaving, !pod->life.completes, milli, pod->placement.mig.size(),
                      pod->pod.id.full_name());
  };
  std::ranges::sort(pods, {}, size);
  return pods;
}

class EndingSearch {
 public:
  EndingSearch(const Node& node, const RequestShape& shape, const FitsNode& fits)
      : node_(node),
        fits_(fits),
        missing_(AmountsMissing(node, shape, FreeGpus(node, shape))),
        pods_(RunningOn(node)) {}

  [[nodiscard]] Pods Find() const {
    if (pods_.empty() || !FitsWithout(pods_)) return {};
    for (Pod pod : pods_) {
      if (CoversAll(AmountsHeld(*pod), missing_) && FitsWithout({pod})) return {pod};
    }
    Pods few = Greedy();
    if (few.size() <= 2) return few;
    Pods two = Pair();
    return two.empty() ? few : two;
  }

 private:
  [[nodiscard]] bool FitsWithout(const Pods& gone) const {
    return fits_(node_.Without([&gone](const PodRecord& pod) {
      return std::ranges::any_of(gone, [&](Pod one) { return one->pod.id == pod.pod.id; });
    }));
  }

  // Those that are ending, then those that hold most of what is missing, the larger ones first.
  [[nodiscard]] Pods ByCoverage() const {
    Pods order(pods_.rbegin(), pods_.rend());
    std::ranges::stable_sort(order, [this](Pod a, Pod b) {
      const auto key = [this](Pod pod) {
        return std::tuple(!pod->leaving, -CoverageOf(AmountsHeld(*pod), missing_),
                          !pod->life.completes);
      };
      return key(a) < key(b);
    });
    return order;
  }

  // Without the ones that turned out not to be needed.
  [[nodiscard]] Pods Greedy() const {
    const Pods order = ByCoverage();
    Pods gone;
    for (auto pod = order.begin(); pod != order.end() && !FitsWithout(gone); ++pod) {
      gone.push_back(*pod);
    }
    for (std::size_t i = gone.size(); i-- > 0;) {
      Pods fewer = gone;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (FitsWithout(fewer)) gone = std::move(fewer);
    }
    return gone;
  }

  [[nodiscard]] Pods Pair() const {
    Pods holders = ByCoverage();
    if (missing_ != Amounts{}) {
      std::erase_if(holders,
                    [this](Pod pod) { return CoverageOf(AmountsHeld(*pod), missing_) == 0; });
    }
    if (holders.size() > kMostInPairs) holders.resize(kMostInPairs);
    for (std::size_t i = 0; i < holders.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        Amounts held = AmountsHeld(*holders[i]);
        const Amounts more = AmountsHeld(*holders[j]);
        for (std::size_t kind = 0; kind < held.size(); ++kind) held[kind] += more[kind];
        if (CoversAll(held, missing_) && FitsWithout({holders[j], holders[i]}))
          return {holders[j], holders[i]};
      }
    }
    return {};
  }

  const Node& node_;
  const FitsNode& fits_;
  const Amounts missing_;
  const Pods pods_;
};

}  // namespace

PreemptionOutlook OutlookOf(const PreemptionAsk& ask) { return Search(ask).Find(); }

bool IsOfOtherReplicaSet(const PodRecord& held, std::string_view space, const PodLife& own) {
  return held.life.deployment() == own.deployment() && held.life.replica_set != own.replica_set &&
         held.pod.id.namespace_name == space;
}

std::optional<RolloutBlock> FindRolloutBlock(const Snapshot& snapshot, const PodRequest& pod,
                                             std::string_view replica_set) {
  const PodLife own{.replica_set = std::string(replica_set)};
  if (replica_set.empty() || !pod.gang.empty()) return std::nullopt;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    for (const auto& held : node.pods()) {
      if (held->leaving || !IsOfOtherReplicaSet(*held, pod.id.namespace_name, own)) continue;
      if (Admits(node.spec(), pod) != Reason::kFits) continue;
      const auto ends = [&held](const PodRecord& one) { return one.pod.id == held->pod.id; };
      if (!Fits(node.Without(ends), pod.shape)) continue;
      return RolloutBlock{std::string(own.deployment()), held->pod.id.full_name(),
                          node.spec().name};
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> LeastEnding(const Node& node, const RequestShape& shape) {
  const Amounts missing = AmountsMissing(node, shape, FreeGpus(node, shape));
  std::size_t least = 1;
  for (std::size_t kind = 0; kind < missing.size(); ++kind) {
    std::vector<std::int64_t> held;
    for (const auto& pod : node.pods()) {
      if (MayEndForGood(*pod)) held.push_back(AmountsHeld(*pod)[kind]);
    }
    std::ranges::sort(held, std::greater<>());
    std::int64_t left = missing[kind];
    std::size_t count = 0;
    for (; count < held.size() && left > 0; ++count) left -= held[count];
    if (left > 0 || held.empty()) return std::nullopt;
    least = std::max(least, count);
  }
  return least;
}

std::vector<const PodRecord*> EndingPods(const Node& node, const RequestShape& shape,
                                         const FitsNode& fits) {
  return EndingSearch(node, shape, fits).Find();
}

}  // namespace berth
