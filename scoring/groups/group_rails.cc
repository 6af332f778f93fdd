// SPDX-License-Identifier: Apache-2.0
#include "scoring/groups/group_rails.h"

#include <bit>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cluster/node/gpu_division.h"
#include "scoring/devices/device_picker.h"
#include "scoring/devices/neighbours.h"
#include "topology/links/wiring.h"

namespace berth {
namespace {

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

}  // namespace berth
