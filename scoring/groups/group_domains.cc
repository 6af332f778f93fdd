// SPDX-License-Identifier: Apache-2.0
#include "scoring/groups/group_domains.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <variant>

#include "cluster/node/gpu_division.h"
#include "scoring/admission.h"
#include "scoring/devices/device_picker.h"
#include "scoring/devices/neighbours.h"
#include "scoring/explain/other_limits.h"
#include "scoring/mig/mig_tables.h"
#include "scoring/registry.h"
#include "scoring/scorer.h"
#include "topology/links/wiring.h"

namespace berth {
namespace {

// How many pods the group still needs, this one included.
std::int64_t Missing(const PodRequest& pod, const GroupMembers& members) {
  if (const GangPart* const part = PartOf(pod.gang, pod.role)) {
    std::int64_t needs = 0;
    for (const GangRole& role : pod.gang.roles) needs += part->Has(role.name) ? role.minimum : 0;
    // How many are left of a part nobody counts.
    return std::max<std::int64_t>(members.left ? 1 : needs - members.placed, 1);
  }
  const std::int64_t size = pod.gang.empty() ? 1 : pod.gang.size();
  return std::max<std::int64_t>(members.left.value_or(size - members.placed), 1);
}

// The domains of the level in which members are, each once.
std::vector<TopologyDomain> DomainsWithMembers(const DomainTree& tree, const GroupMembers& members,
                                               std::size_t level) {
  std::vector<TopologyDomain> domains;
  for (const NodeIndex node : members.nodes) {
    const TopologyDomain domain = tree.DomainOf(node, level);
    if (tree.named(domain)) domains.push_back(domain);
  }
  std::ranges::sort(domains);
  domains.erase(std::unique(domains.begin(), domains.end()), domains.end());
  return domains;
}

std::optional<TopologyDomain> Roomiest(const DomainTree& tree, std::span<const int> room,
                                       std::size_t level) {
  const std::vector<std::int64_t> pods = tree.SumUp(room);
  std::optional<TopologyDomain> best;
  const auto [first, last] = tree.Level(level);
  for (TopologyDomain domain = first; domain < last; ++domain) {
    if (!tree.named(domain) || pods[domain] == 0) continue;
    if (!best || pods[domain] > pods[*best]) best = domain;
  }
  return best;
}

// How many of the pods fit each node, one after the other.
std::vector<int> RoomFor(const Snapshot& snapshot, const PodRequest& pod) {
  const bool admission_matters = AdmissionMatters(snapshot, pod);
  std::vector<int> room(snapshot.size(), 0);
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (admission_matters && Admits(node.spec(), pod) != Reason::kFits) continue;
    room[i] = PodsThatFit(node, pod);
  }
  return room;
}

// The domain of the level for a group without placed members.
std::optional<TopologyDomain> FirstDomain(const DomainTree& tree, std::span<const int> room,
                                          const PodRequest& pod, const GroupMembers& members,
                                          std::size_t level) {
  // A group of unknown size is best served by the domain with most room.
  if (!pod.gang.empty() && pod.gang.size() == 0 && !members.left)
    return Roomiest(tree, room, level);
  DomainWish wish;
  wish.pods = Missing(pod, members);
  wish.level = level;
  const auto choice = ChooseDomains(tree, room, wish);
  if (!choice) return std::nullopt;
  return choice->domain;
}

// The same, given where this member may go. Room is first taken from the whole snapshot, not from
// the candidates: a scheduler leaves out nodes that it has filled with members whose binds have not
// arrived here, and every member must find the same domain. Only if that domain has no node for
// this member do the candidates decide.
std::optional<TopologyDomain> DomainToOpen(const Snapshot& snapshot, const DomainTree& tree,
                                           const PodRequest& pod, const GroupMembers& members,
                                           std::span<const NodeIndex> candidates,
                                           std::span<const Reason> reasons) {
  const std::size_t level = *pod.domain.required;
  std::vector<int> room = RoomFor(snapshot, pod);
  std::vector<int> of_candidates(room.size(), 0);
  const auto first = FirstDomain(tree, room, pod, members, level);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (reasons[i] != Reason::kFits) continue;
    if (first && tree.DomainOf(candidates[i], level) == *first) return first;
    of_candidates[candidates[i]] = room[candidates[i]];
  }
  return FirstDomain(tree, of_candidates, pod, members, level);
}

bool Contains(std::span<const TopologyDomain> sorted, TopologyDomain domain) {
  return std::ranges::binary_search(sorted, domain);
}

Reason Belongs(const DomainTree& tree, std::span<const TopologyDomain> allowed, std::size_t level,
               NodeIndex node) {
  const TopologyDomain domain = tree.DomainOf(node, level);
  if (!tree.named(domain)) return Reason::kNoTopologyDomain;
  return Contains(allowed, domain) ? Reason::kFits : Reason::kOutsideDomain;
}

// The preferred vertices, and how near each candidate is to the nearest.
class Nearness {
 public:
  Nearness(const DomainTree& tree, std::size_t levels) : tree_(tree), marked_(tree.size(), 0) {
    for (std::size_t level = 0; level < levels; ++level) {
      if (tree.CountNamed(level) > 0) used_.push_back(level);
    }
  }

  // With all domains that it is in.
  void Mark(TopologyDomain vertex) {
    for (; marked_[vertex] == 0; vertex = tree_.parent(vertex)) marked_[vertex] = 1;
  }

  [[nodiscard]] int Of(NodeIndex node) const {
    for (std::size_t depth = used_.size(); depth > 0; --depth) {
      const TopologyDomain domain = tree_.DomainOf(node, used_[depth - 1]);
      if (marked_[domain] == 0 || !tree_.named(domain)) continue;
      return static_cast<int>(depth * kMaxScore / used_.size());
    }
    return 0;
  }

 private:
  const DomainTree& tree_;
  std::vector<char> marked_;       // [vertex]
  std::vector<std::size_t> used_;  // the levels that count
};

// The vertex that best fits a group of known size without placed members.
std::optional<TopologyDomain> BestStart(const Snapshot& snapshot, const DomainTree& tree,
                                        const PodRequest& pod) {
  if (pod.gang.size() < 2 || tree.levels() == 0) return std::nullopt;
  DomainWish wish;
  wish.pods = pod.gang.size();
  wish.mode = DomainMode::kPreferred;
  wish.level = pod.domain.preferred.value_or(tree.levels() - 1);
  const auto choice = ChooseDomains(tree, RoomFor(snapshot, pod), wish);
  if (!choice || choice->domain == DomainTree::kCluster) return std::nullopt;
  return choice->domain;
}

std::int64_t Times(std::int64_t free, std::int64_t ask) { return ask > 0 ? free / ask : kMostPods; }

std::int64_t SharesOn(const Node& node, int gpu, const RequestShape& shape) {
  const auto choice = ShareOn(node, gpu, shape);
  if (!choice || !HasFree(node, gpu, *choice, shape)) return 0;
  const GpuFree& free = node.gpus()[static_cast<std::size_t>(gpu)];
  return std::min(Times(free.milli, choice->milli), Times(free.memory_mib, choice->memory_mib));
}

// One after the other, with shares of several GPUs: which are taken decides how many fit.
std::int64_t PodsWithShares(Node node, const RequestShape& shape) {
  PodRequest pod;
  pod.shape = shape;
  for (std::int64_t pods = 0; pods < kMostPods; ++pods) {
    const auto choices = DeviceChoices(node, shape, DeviceRule::kTightest);
    if (choices.empty()) return pods;
    pod.id.uid = "in turn " + std::to_string(pods);
    node.Put(std::make_shared<const PodRecord>(
        PodRecord{pod, PlacementFor(node, shape, choices.front()), PodState::kPlanned, {}}));
  }
  return kMostPods;
}

// One after the other, as the devices are planned.
std::int64_t MigPodsFor(const Node& node, const MigSlices& ask) {
  const MigSpec& spec = *node.spec().mig;
  MigUse use = node.mig();
  for (std::int64_t pods = 0;; ++pods) {
    const auto plan = PlanMig(spec, use, ask);
    if (!plan || pods == kMostPods || !use.TakeAll(spec, plan->grants)) return pods;
    if (!spec.by_claims()) continue;
    for (const MigSlot& slot : plan->slots) use.Take(slot);  // there are no grants
  }
}

std::int64_t DevicesFor(const Node& node, const RequestShape& shape) {
  if (const auto* const whole = std::get_if<WholeGpus>(&shape.gpus)) {
    if (node.spec().places.count > 0) return node.free_places() / whole->count;
    return WholeChoicesInTurn(node, whole->count, shape);
  }
  if (const MigSlices* const mig = shape.mig()) {
    const int instead = GpusInsteadOfMig(node, shape);
    return instead > 0 ? WholeChoicesInTurn(node, instead, shape) : MigPodsFor(node, *mig);
  }
  if (!shape.is_share()) return kMostPods;
  if (shape.gpu_count() > 1 || shape.may_divide()) return PodsWithShares(node, shape);
  std::int64_t count = 0;
  for (int gpu = 0; gpu < static_cast<int>(node.gpus().size()); ++gpu) {
    count += SharesOn(node, gpu, shape);
  }
  return count;
}

// The GPUs that members of the group hold on the node.
GpuMask HeldBy(const GangId& gang, const Node& node) {
  GpuMask held = 0;
  for (const auto& record : node.pods()) {
    if (record->pod.gang.id != gang) continue;
    held |= GpusAmong(record->placement.grants, node.gpus().size());
  }
  return held;
}

// The narrowest domain that is named, from the level in which the group is to be upwards.
TopologyDomain DomainAround(const DomainTree& tree, const DomainAsk& ask, NodeIndex node,
                            std::size_t& level) {
  for (level = ask.required.value_or(ask.preferred.value_or(tree.levels() - 1)) + 1; level > 0;) {
    const TopologyDomain domain = tree.DomainOf(node, --level);
    if (tree.named(domain)) return domain;
  }
  return DomainTree::kCluster;
}

// For the first member of a group: the GPUs that are free on most of the nodes that the others may
// use.
GpuMask PlannedRails(const Snapshot& snapshot, const DomainTree& tree, const PodRequest& pod,
                     int gpus, NodeIndex node) {
  std::size_t level = 0;
  const TopologyDomain domain =
      tree.levels() == 0 ? DomainTree::kCluster : DomainAround(tree, pod.domain, node, level);
  std::vector<GpuMask> free;
  for (NodeIndex other = 0; other < snapshot.size(); ++other) {
    if (domain != DomainTree::kCluster && tree.DomainOf(other, level) != domain) continue;
    const GpuMask idle = IdleGpus(snapshot.node(other));
    if (std::popcount(idle) >= gpus) free.push_back(idle);
  }
  return AlignRails(free, gpus).rails;
}

// The next larger number with as many bits (Knuth, TAOCP 4A, 7.1.3).
GpuMask NextOfSize(GpuMask set) {
  const GpuMask low = LowestBit(set), carried = set + low;
  return carried == 0 ? 0 : carried | ((carried ^ set) / low >> 2);
}

// `set` with the lowest of `free` until it has that size.
GpuMask LowestOf(GpuMask free, int size, GpuMask set) {
  for (; free != 0 && std::popcount(set) < size; free &= free - 1) set |= LowestBit(free);
  return set;
}

// Whether a free set has as good sets of every size as another one of as many GPUs.
bool NoWorse(const GpuLinks& links, GpuMask free, GpuMask other) {
  if (links.MostOfOneGroup(free) < links.MostOfOneGroup(other)) return false;
  for (int size = 2; size <= std::popcount(free); ++size) {
    if (links.BestQuality(free, size) < links.BestQuality(other, size)) return false;
  }
  return true;
}

}  // namespace

GroupMembers MembersOn(const Snapshot& snapshot, const PodRequest& pod,
                       std::span<const std::string> names, const GangPart* of) {
  GroupMembers members;
  for (const std::string& name : names) {
    const NodeIndex index = snapshot.names().Find(name);
    if (index == kNoNode) continue;
    const auto here = std::ranges::count_if(snapshot.node(index).pods(), [&](const auto& other) {
      return other->pod.gang.id == pod.gang.id && other->pod.id.uid != pod.id.uid &&
             (of == nullptr || of->Has(other->pod.role));
    });
    if (here == 0) continue;
    members.nodes.push_back(index);
    members.placed += here;
  }
  return members;
}

void RequireDomain(const Snapshot& snapshot, const DomainTree& tree, const PodRequest& pod,
                   const GroupMembers& members, std::span<const NodeIndex> candidates,
                   std::span<Reason> reasons) {
  const std::size_t level = *pod.domain.required;
  std::vector<TopologyDomain> allowed = DomainsWithMembers(tree, members, level);
  if (allowed.empty()) {
    if (const auto first = DomainToOpen(snapshot, tree, pod, members, candidates, reasons)) {
      allowed.push_back(*first);
    }
  }
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (VerdictOf(reasons[i]) == Verdict::kUnresolvable) continue;
    const Reason belongs = Belongs(tree, allowed, level, candidates[i]);
    if (belongs == Reason::kOutsideDomain && allowed.empty()) {
      if (reasons[i] == Reason::kFits) reasons[i] = Reason::kNoDomainHasRoom;
    } else if (belongs != Reason::kFits) {
      reasons[i] = belongs;
    }
  }
}

Reason MayJoin(const DomainTree& tree, const PodRequest& pod, const GroupMembers& members,
               NodeIndex node) {
  const std::size_t level = *pod.domain.required;
  std::vector<TopologyDomain> allowed = DomainsWithMembers(tree, members, level);
  if (allowed.empty()) allowed.push_back(tree.DomainOf(node, level));
  return Belongs(tree, allowed, level, node);
}

bool HoldsRestOfGroup(const Snapshot& snapshot, const DomainTree& tree, const PodRequest& pod,
                      const GroupMembers& members, NodeIndex index, const Node& instead) {
  if (!pod.domain.required) return true;
  const std::size_t level = *pod.domain.required;
  if (!DomainsWithMembers(tree, members, level).empty()) return true;
  std::int64_t missing = Missing(pod, members) - PodsThatFit(instead, pod);
  for (NodeIndex other = 0; other < snapshot.size() && missing > 0; ++other) {
    if (other == index || tree.DomainOf(other, level) != tree.DomainOf(index, level)) continue;
    const Node& node = snapshot.node(other);
    if (Admits(node.spec(), pod) == Reason::kFits) missing -= PodsThatFit(node, pod);
  }
  return missing <= 0;
}

std::vector<int> PullOf(const Snapshot& snapshot, const DomainTree& tree, const PodRequest& pod,
                        const GroupMembers& members, std::span<const NodeIndex> candidates) {
  if (pod.gang.empty() || pod.domain.unconstrained) return {};
  Nearness nearness(tree, pod.domain.preferred ? *pod.domain.preferred + 1 : tree.levels());
  nearness.Mark(DomainTree::kCluster);
  if (members.nodes.empty()) {
    const auto start = BestStart(snapshot, tree, pod);
    if (!start) return {};
    nearness.Mark(*start);
  }
  for (const NodeIndex node : members.nodes) nearness.Mark(tree.NodeVertex(node));
  std::vector<int> pull;
  pull.reserve(candidates.size());
  for (const NodeIndex node : candidates) pull.push_back(nearness.Of(node));
  return pull;
}

int PodsThatFit(const Node& node, const RequestShape& shape) {
  if (FirstObjection(node, shape) != Reason::kFits) return 0;
  const std::int64_t pods =
      std::min({DevicesFor(node, shape), Times(node.free_cpu_milli(), shape.cpu_milli),
                Times(node.free_memory_bytes(), shape.memory_bytes),
                Times(node.free_ephemeral_bytes(), shape.ephemeral_bytes)});
  return static_cast<int>(std::clamp<std::int64_t>(pods, 1, kMostPods));
}

int PodsThatFit(const Node& node, const PodRequest& pod) {
  return std::min(PodsThatFit(node, pod.shape), PodsByOthers(node, pod));
}

GpuMask RailsFor(const Snapshot& snapshot, const DomainTree& tree, const PodRequest& pod,
                 const GroupMembers& members, NodeIndex node) {
  const auto* whole = std::get_if<WholeGpus>(&pod.shape.gpus);
  if (whole == nullptr || pod.gang.empty() || pod.gang.size() == 1) return 0;
  GpuMask rails = 0;
  for (const NodeIndex other : members.nodes) {
    if (other != node) rails |= HeldBy(pod.gang.id, snapshot.node(other));
  }
  return rails != 0 ? rails : PlannedRails(snapshot, tree, pod, whole->count, node);
}

GpuMask AlignedWith(const GpuLinks& links, GpuMask rails, GpuMask free, GpuMask chosen,
                    const LinkAsk& ask) {
  const int size = std::popcount(chosen);
  if (!links.known()) return LowestOf(free & ~rails, size, LowestOf(free & rails, size, 0));
  // The search below compares all sets, without regard to a pattern.
  if (std::bit_width(free) > kMaxTableGpus || ask.pattern != LinkPattern::kAny) return chosen;
  GpuMask best = chosen;
  for (GpuMask set = AllGpus(size); set != 0 && set <= free; set = NextOfSize(set)) {
    if ((set & ~free) != 0 || std::popcount(set & rails) <= std::popcount(best & rails)) continue;
    const bool as_good = links.quality(set) >= links.quality(chosen) &&
                         links.span(set) <= links.span(chosen) && links.Satisfies(set, ask);
    if (as_good && NoWorse(links, free ^ set, free ^ chosen)) best = set;
  }
  return best;
}

Placement OnRails(const Node& node, const RequestShape& shape, Placement placement, GpuMask rails) {
  const GpuMask chosen = GpusAmong(placement.grants, node.gpus().size());
  const bool is_free_to_choose =
      std::holds_alternative<WholeGpus>(shape.gpus) && node.spec().by_claims.empty();
  if (rails == 0 || chosen == 0 || !is_free_to_choose) return placement;
  GpuMask free = 0;  // that suit the pod as well as what was chosen
  for (const GpuMask suiting : BySuitability(node, FreeGpus(node, shape), shape)) {
    free = suiting;
    if ((chosen & ~free) == 0) break;
  }
  const GpuMask aligned = AlignedWith(node.spec().links, rails, free, chosen, shape.links);
  const bool is_given = !KubeletLimits(node.spec(), shape) ||
                        KubeletGives(node.spec(), shape, IdleGpus(node), aligned);
  return aligned == chosen || !is_given ? std::move(placement)
                                        : PlacementFor(node, shape, {aligned, kMilliPerGpu, 0});
}

std::vector<int> GangRoom::Of(const std::shared_ptr<const Snapshot>& snapshot,
                              const RequestShape& shape) {
  Room room;  // a copy: nodes are looked at without the lock
  {
    const MutexLock lock(mutex_);
    if (const Room* const known = rooms_.Touch(shape)) room = *known;
  }
  const auto look_at = [&](NodeIndex i) { room.pods[i] = PodsThatFit(snapshot->node(i), shape); };
  if (room.snapshot != nullptr && snapshot->SameNodes(*room.snapshot)) {
    snapshot->ForEachDifference(*room.snapshot, look_at);
  } else {
    room.pods.resize(snapshot->size());
    for (NodeIndex i = 0; i < snapshot->size(); ++i) look_at(i);
  }
  room.snapshot = snapshot;
  const MutexLock lock(mutex_);
  return rooms_.Put(shape, std::move(room)).pods;
}

}  // namespace berth
