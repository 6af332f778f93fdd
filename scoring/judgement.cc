// SPDX-License-Identifier: Apache-2.0
#include "scoring/judgement.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/text.h"
#include "scoring/admission.h"
#include "scoring/devices/device_picker.h"
#include "scoring/devices/neighbours.h"
#include "scoring/explain/other_limits.h"
#include "scoring/filters/device_fit.h"
#include "scoring/priority.h"
#include "scoring/registry.h"
#include "topology/gpu_vendor.h"

namespace berth {
namespace {

void LeaveWhatIsKept(const Snapshot& snapshot, const Question& question,
                     std::span<Reason> reasons) {
  if (question.reservations == nullptr || question.reservations->empty()) return;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (reasons[i] != Reason::kFits) continue;
    const auto* const owner = question.reservations->KeptFor(
        question.pod, snapshot, question.candidates[i], question.claims);
    if (owner != nullptr) reasons[i] = Reason::kKeptForWaiting;
  }
}

// The reasons where the pod's shape plays no part; nothing: it decides.
std::optional<std::vector<Reason>> WhateverItsShape(const Snapshot& snapshot,
                                                    const Question& question) {
  std::vector<Reason> reasons(question.candidates.size(), Reason::kFits);
  if (!question.pod.refusal.empty()) {
    std::ranges::fill(reasons, Reason::kPodRefused);
    return reasons;
  }
  if (!question.behind_scheduler || !AsksForNothingOfOurs(question.pod)) return std::nullopt;
  if (IsTurnedAway(question.pod, question.guard)) {
    std::ranges::transform(question.candidates, reasons.begin(), [&](NodeIndex node) {
      return IsGpuNode(snapshot.node(node).spec()) ? Reason::kKeptForGpuPods : Reason::kFits;
    });
  }
  if (question.claims) LeaveWhatIsKept(snapshot, question, reasons);
  return reasons;
}

// What depends on the pod and not on its shape: whether the pod may go there at all, whether
// evictions could make room for it, what is kept for others, and the domain of its group.
void Refine(const Snapshot& snapshot, const Question& question, std::span<Reason> reasons) {
  const PodRequest& pod = question.pod;
  const std::span<const NodeIndex> candidates = question.candidates;
  const bool admission_matters = AdmissionMatters(snapshot, pod);
  const bool by_claim = question.behind_scheduler && !pod.device_class.empty();
  const bool is_guarded = AsksForNothingOfOurs(pod) && IsTurnedAway(pod, question.guard);
  const bool counts_cores = question.behind_scheduler && !pod.shape.wants_gpu();
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const Node& node = snapshot.node(candidates[i]);
    const bool claims = by_claim && reasons[i] != Reason::kFits && GetsClaimOn(node, pod);
    if (claims) reasons[i] = ObjectionBesideGpus(node, pod);
    if (reasons[i] == Reason::kFits) {
      if (admission_matters) reasons[i] = Admits(node.spec(), pod);
      const bool is_kept = is_guarded && reasons[i] == Reason::kFits && IsGpuNode(node.spec());
      if (is_kept) reasons[i] = Reason::kKeptForGpuPods;
      // kube-scheduler does not see that others have the devices.
      const bool by_cores = counts_cores && reasons[i] == Reason::kFits;
      if (by_cores && AreCores(LackOf(node, pod))) reasons[i] = Reason::kGpusHeld;
    } else if (!claims && VerdictOf(reasons[i]) == Verdict::kUnschedulable) {
      reasons[i] = AfterEvictions(node, pod, reasons[i]);
    }
  }
  LeaveWhatIsKept(snapshot, question, reasons);
  if (question.group.tree && pod.domain.required) {
    RequireDomain(snapshot, *question.group.tree, pod, question.group.members, candidates, reasons);
  }
}

// Of nodes that Berth cannot judge.
std::vector<std::uint8_t> FullestFirst(const Snapshot& snapshot, std::span<const NodeIndex> nodes) {
  std::vector<int> gpus;
  for (const NodeIndex node : nodes) gpus.push_back(GpusByClaim(snapshot.node(node)));
  return ToPriorities(gpus, TieRule::kEqual);
}

// kube-scheduler writes the claim of a pod before it has it bound, and asks about the next pods in
// between. Berth then sees nodes as equal that are not, and kube-scheduler, which knows better,
// would spread the pods over them. So one of the best is best alone, the first by name: the pods
// follow each other there until kube-scheduler finds it full and asks about the others.
void PreferFirst(const Snapshot& snapshot, const PodRequest& pod, std::span<const NodeIndex> nodes,
                 std::span<std::uint8_t> priorities) {
  std::size_t first = nodes.size(), best = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (first == nodes.size() || priorities[i] > priorities[first]) {
      first = i;
      best = 0;
    }
    if (priorities[i] < priorities[first]) continue;
    ++best;
    if (nodes[i] < nodes[first]) first = i;
  }
  if (best < 2 || !GivesByClaim(snapshot.node(nodes[first]), pod)) return;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i != first && priorities[i] > 0) --priorities[i];
  }
}

std::vector<ScorePart> PartsOf(const Profile& profile, const Node& node, const RequestShape& shape,
                               const Placement& placement) {
  const DeviceChoice choice = ChoiceOf(node, placement.grants);
  std::vector<ScorePart> parts;
  for (const Profile::Weighted& weighted : profile.scorers) {
    if (!weighted.scorer->Applies(shape)) continue;
    int score = 0;
    weighted.scorer->Score(node, shape, std::span(&choice, 1), std::span(&score, 1));
    parts.push_back({weighted.name, weighted.weight, score});
  }
  return parts;
}

}  // namespace

bool NeedsGroup(const PodRequest& pod) { return pod.domain.required || !pod.gang.empty(); }

bool AsksForNothingOfOurs(const PodRequest& pod) {
  const auto are_cores = [](const OtherResource& other) { return AreCores(other.name); };
  return !pod.shape.wants_gpu() && pod.refusal.empty() && !pod.domain.required &&
         (pod.others == nullptr || std::ranges::none_of(*pod.others, are_cores));
}

std::vector<Reason> ReasonsFor(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                               const Question& question) {
  if (auto same = WhateverItsShape(*snapshot, question)) return *std::move(same);
  std::vector<Reason> reasons = engine.Filter(snapshot, question.pod.shape, question.candidates);
  Refine(*snapshot, question, reasons);
  return reasons;
}

std::vector<Reason> ReasonsAnew(const Snapshot& snapshot, const Question& question) {
  if (auto same = WhateverItsShape(snapshot, question)) return *std::move(same);
  std::vector<Reason> reasons(question.candidates.size());
  std::ranges::transform(question.candidates, reasons.begin(), [&](NodeIndex node) {
    return FirstObjection(snapshot.node(node), question.pod.shape);
  });
  Refine(snapshot, question, reasons);
  return reasons;
}

Judgement Judge(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                const Question& question) {
  Judgement judgement;
  judgement.reasons = ReasonsFor(engine, snapshot, question);
  const std::vector<Reason>& reasons = judgement.reasons;
  judgement.fitting.reserve(reasons.size());
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const NodeIndex candidate = question.candidates[i];
    if (reasons[i] == Reason::kFits) {
      judgement.fitting.push_back(candidate);
    } else if (judgement.first_reason == Reason::kFits) {
      judgement.first_reason = reasons[i];
      if (IsAboutLinks(reasons[i])) {
        judgement.shortage = LinkShortage(snapshot->node(candidate), question.pod.shape);
      }
    }
  }
  if (judgement.fitting.empty()) return judgement;
  judgement.pull = PullOn(*snapshot, question.pod, question.group, judgement.fitting);
  return judgement;
}

void Shortlist(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
               const PodRequest& pod, std::size_t most, Judgement& judgement) {
  std::vector<NodeIndex>& fitting = judgement.fitting;
  std::vector<int>& pull = judgement.pull;
  if (most == 0 || fitting.size() <= most) return;
  const auto priorities = Priorities(engine, snapshot, pod, fitting, pull);
  // Among equals the first by name, whatever the order of the question: one that turns from pod to
  // pod would spread pods over nodes that are alike.
  std::vector<std::size_t> order = UpTo(fitting.size());
  const auto cut = order.begin() + static_cast<std::ptrdiff_t>(most);
  std::ranges::nth_element(order, cut, [&](std::size_t a, std::size_t b) {
    return priorities[a] != priorities[b] ? priorities[a] > priorities[b] : fitting[a] < fitting[b];
  });
  std::vector<bool> goes_on(fitting.size());
  for (auto best = order.begin(); best != cut; ++best) goes_on[*best] = true;
  PassOver(goes_on, judgement);
}

void PassOver(const std::vector<bool>& goes_on, Judgement& judgement) {
  std::vector<NodeIndex>& fitting = judgement.fitting;
  std::vector<int>& pull = judgement.pull;
  std::size_t fit = 0, kept = 0;
  for (Reason& reason : judgement.reasons) {
    if (reason != Reason::kFits) continue;
    if (goes_on[fit]) {
      fitting[kept] = fitting[fit];
      if (!pull.empty()) pull[kept] = pull[fit];
      ++kept;
    } else {
      reason = Reason::kBetterElsewhere;
    }
    ++fit;
  }
  fitting.resize(kept);
  if (!pull.empty()) pull.resize(kept);
}

std::vector<int> PullOn(const Snapshot& snapshot, const PodRequest& pod, const GroupPlaces& group,
                        std::span<const NodeIndex> candidates) {
  const auto is_former = [&group](NodeIndex node) {
    return std::ranges::binary_search(group.former, node);
  };
  if (std::ranges::any_of(candidates, is_former)) {
    std::vector<int> pull;
    for (const NodeIndex node : candidates) pull.push_back(is_former(node) ? 100 : 0);
    return pull;
  }
  if (!group.tree || pod.gang.empty()) return {};
  return PullOf(snapshot, *group.tree, pod, group.members, candidates);
}

tl::expected<Placement, Reason> PlaceInGroup(Engine& engine,
                                             const std::shared_ptr<const Snapshot>& snapshot,
                                             const PodRequest& pod, const GroupPlaces& group,
                                             NodeIndex node) {
  auto placement = engine.PlaceOn(snapshot, pod.shape, node);
  if (!placement || !group.tree || pod.gang.empty()) return placement;
  const GpuMask rails = RailsFor(*snapshot, *group.tree, pod, group.members, node);
  return OnRails(snapshot->node(node), pod.shape, *std::move(placement), rails);
}

std::optional<std::vector<std::string>> VictimsOn(const Snapshot& snapshot, const PodRequest& pod,
                                                  const GroupPlaces& group, NodeIndex index,
                                                  std::span<const std::string> given,
                                                  const EvictionLimits& limits,
                                                  const Reservations* reservations) {
  const Node& node = snapshot.node(index);
  const bool in_domain = group.tree && pod.domain.required;
  if (Admits(node.spec(), pod) != Reason::kFits) return std::nullopt;
  if (GetsClaimOn(node, pod)) {  // kube-scheduler knows whom
    const bool kept = reservations && KeptNodeFrom(reservations->nodes(), node.spec().name, pod);
    return kept ? std::nullopt : std::optional(std::vector<std::string>());
  }
  if (in_domain && MayJoin(*group.tree, pod, group.members, index) != Reason::kFits) {
    return std::nullopt;
  }
  NodeSuffices is_left;
  if (reservations != nullptr) {  // also where nothing is kept yet: who stands in line comes first
    is_left = [&](const Node& left) {
      return !reservations->IsKeptWithout(pod, snapshot, index, left);
    };
  }
  auto added = AddedVictims(node, pod, given, limits, is_left);
  if (!added || !in_domain) return added;
  std::vector<std::string> all(given.begin(), given.end());
  all.insert(all.end(), added->begin(), added->end());
  if (!HoldsRestOfGroup(snapshot, *group.tree, pod, group.members, index, WithoutPods(node, all))) {
    return std::nullopt;
  }
  return added;
}

std::optional<VictimSet> LighterVictimsOn(const Snapshot& snapshot, const PodRequest& pod,
                                          const GroupPlaces& group, NodeIndex index,
                                          const VictimSet& proposed, const EvictionLimits& limits,
                                          const Reservations* reservations) {
  auto lighter = LighterVictims(snapshot.node(index), pod, proposed, limits);
  if (!lighter) return std::nullopt;
  // The rest of the pod's group may need what other victims would have left.
  const auto added = VictimsOn(snapshot, pod, group, index, lighter->uids, limits, reservations);
  if (!added || !added->empty()) return std::nullopt;
  return lighter;
}

std::optional<VictimSet> AgreedVictims(const Snapshot& snapshot, const PodRequest& pod,
                                       const GroupPlaces& group, NodeIndex index,
                                       const VictimSet& proposed, const EvictionLimits& limits,
                                       const Reservations* reservations, bool breaks_gangs) {
  const auto added = VictimsOn(snapshot, pod, group, index, proposed.uids, limits, reservations);
  if (!added) return std::nullopt;
  VictimSet all = proposed;
  all.uids.insert(all.uids.end(), added->begin(), added->end());
  const Node& node = snapshot.node(index);
  const auto breaks = [&](const VictimSet& set) {
    return !breaks_gangs && BreaksGang(node, set.uids, limits);
  };
  if (breaks(all)) {
    auto others = WholeGangVictims(node, pod, all, limits);
    if (!others) return std::nullopt;
    const auto more = VictimsOn(snapshot, pod, group, index, others->uids, limits, reservations);
    return more && more->empty() ? std::move(others) : std::nullopt;
  }
  if (limits.ending && !limits.ending->empty()) return all;  // what is left of them would be broken
  auto lighter = LighterVictimsOn(snapshot, pod, group, index, all, limits, reservations);
  return lighter && !breaks(*lighter) ? std::move(lighter) : std::move(all);
}

// Nodes with a taint PreferNoSchedule get 0, which ranks them behind the others, and so do those
// that Berth cannot judge, where it can judge some.
std::vector<std::uint8_t> Priorities(Engine& engine,
                                     const std::shared_ptr<const Snapshot>& snapshot,
                                     const PodRequest& pod, std::span<const NodeIndex> candidates,
                                     std::span<const int> pull) {
  if (snapshot->soft_tainted_nodes() == 0 && pod.device_class.empty()) {
    return engine.Prioritize(snapshot, pod.shape, candidates, pull);
  }
  const auto is_judged = [&](NodeIndex node) { return !GetsClaimOn(snapshot->node(node), pod); };
  const bool any_judged = std::ranges::any_of(candidates, is_judged);
  const auto counts = [&](NodeIndex node) { return is_judged(node) == any_judged; };
  const auto is_welcome = [&](NodeIndex node) {
    return counts(node) && IsWelcome(snapshot->node(node).spec(), pod);
  };
  const bool any_welcome = std::ranges::any_of(candidates, is_welcome);
  std::vector<NodeIndex> ranked;
  std::vector<int> their_pull;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!(any_welcome ? is_welcome(candidates[i]) : counts(candidates[i]))) continue;
    ranked.push_back(candidates[i]);
    if (!pull.empty()) their_pull.push_back(pull[i]);
  }
  auto theirs = any_judged ? engine.Prioritize(snapshot, pod.shape, ranked, their_pull)
                           : FullestFirst(*snapshot, ranked);
  PreferFirst(*snapshot, pod, ranked, theirs);
  std::vector<std::uint8_t> priorities(candidates.size(), 0);
  const std::uint8_t least = std::ranges::all_of(candidates, is_judged) ? 0 : 1;
  for (std::size_t i = 0, next = 0; i < candidates.size() && next < ranked.size(); ++i) {
    if (candidates[i] == ranked[next]) priorities[i] = std::max(theirs[next++], least);
  }
  return priorities;
}

Reason ReasonOfUnknown(const PodRequest& pod) {
  if (!pod.refusal.empty()) return Reason::kPodRefused;
  return pod.shape.wants_gpu() ? Reason::kNodeUnknown
                               : Reason::kFits;  // no GPU: not ours to refuse
}

bool MayChangeSoon(Reason reason) {
  return VerdictOf(reason) == Verdict::kUnschedulable || reason == Reason::kNodeNotReady ||
         (reason >= Reason::kCpuHeld && reason <= Reason::kMigHeld);
}

std::vector<ScoredNode> ReportScores(Engine& engine, const std::shared_ptr<const Snapshot>& real,
                                     const std::shared_ptr<const Snapshot>& snapshot,
                                     const PodRequest& pod, std::span<const NodeIndex> fitting,
                                     std::size_t most, NodeIndex always,
                                     std::span<const int> pull) {
  if (fitting.empty()) return {};
  const RequestShape& shape = pod.shape;
  PlanTable table = engine.TableFor(real, shape);
  table.Follow(snapshot);
  const std::shared_ptr<const Profile> profile = engine.profile(shape);
  const std::vector<std::int64_t> ranks = table.Ranks(fitting, pull, profile->locality_weight);
  std::vector<std::size_t> order = UpTo(fitting.size());
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return ranks[i]; });
  std::vector<ScoredNode> report;
  std::size_t place = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool is_alone = i == 1 && GivesByClaim(snapshot->node(fitting[order[0]]), pod);
    if (is_alone || (i > 0 && ranks[order[i]] != ranks[order[i - 1]])) place = i + 1;
    const NodeIndex node = fitting[order[i]];
    if (i >= most && node != always) continue;
    ScoredNode scored{
        node, place, table.PlaceOn(node), {}, BehindOn(snapshot->node(node), shape).text()};
    scored.parts = PartsOf(*profile, snapshot->node(node), shape, scored.placement);
    report.push_back(std::move(scored));
  }
  return report;
}

}  // namespace berth
