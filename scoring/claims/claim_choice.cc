// SPDX-License-Identifier: Apache-2.0
#include "scoring/claims/claim_choice.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "scoring/claims/set_rating.h"
#include "scoring/devices/neighbours.h"

namespace berth {
namespace {

// About: a device that is published no more may be taken too.
std::size_t FreeOn(const NodeDevices& node) {
  std::size_t published = 0;
  for (const DevicePool& pool : node.pools) published += pool.devices;
  return published - std::min(published, node.taken.size());
}

void BestRankAndFewestFreeFirst(std::span<const ClaimNode> nodes,
                                std::vector<std::size_t>& positions) {
  // Rank, free, name, position.
  using Order = std::tuple<int, std::size_t, std::string_view, std::size_t>;
  std::vector<Order> order;
  for (const std::size_t i : positions) {
    order.emplace_back(nodes[i].rank, FreeOn(*nodes[i].devices), nodes[i].name, i);
  }
  std::ranges::sort(order);
  std::ranges::transform(order, positions.begin(),
                         [](const Order& node) { return std::get<3>(node); });
}

// Where GPUs are those of slices, which of them a device is follows from the devices.
bool AreLinkedAlike(const Node* a, const Node* b) {
  const auto are_known = [](const Node* node) {
    return node != nullptr && node->spec().links.known();
  };
  if (!are_known(a) && !are_known(b)) return true;
  return are_known(a) && are_known(b) && !a->spec().by_claims.empty() &&
         !b->spec().by_claims.empty() && a->spec().links == b->spec().links;
}

// Whether its pods make a difference between it and nodes whose devices are alike.
bool HasNeighboursFor(const RequestShape* gpus, const Node* node) {
  return gpus != nullptr && node != nullptr && HasNeighbours(*node, *gpus);
}

// Of nodes that are alike the first by name: it is as good as any of them.
std::vector<std::size_t> OneOfEachKind(std::span<const ClaimNode> nodes, const RequestShape* gpus) {
  std::map<std::pair<int, Digest>, std::vector<std::size_t>> kinds;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const ClaimNode& node = nodes[i];
    if (!node.devices->likeness || HasNeighboursFor(gpus, node.node)) {
      chosen.push_back(i);
      continue;
    }
    std::vector<std::size_t>& of_kind = kinds[{node.rank, *node.devices->likeness}];
    const auto alike = std::ranges::find_if(
        of_kind, [&](std::size_t other) { return AreLinkedAlike(node.node, nodes[other].node); });
    if (alike == of_kind.end()) {
      of_kind.push_back(i);
    } else if (node.name < nodes[*alike].name) {
      *alike = i;
    }
  }
  for (const auto& [kind, of_kind] : kinds) {
    chosen.insert(chosen.end(), of_kind.begin(), of_kind.end());
  }
  return chosen;
}

// Of two ends without devices the one that says more.
SearchEnd Worse(SearchEnd a, SearchEnd b) { return std::max(a, b); }

ClaimChoice Chosen(std::size_t node, const NodeQuestion& question, const PickedDevices& picked) {
  ClaimChoice choice{.end = SearchEnd::kFound, .node = node};
  for (const PickedDevice& each : picked.devices) {
    const NodeQuestion::Source& source = question.sources[static_cast<std::size_t>(each.device)];
    choice.devices.push_back(
        {each.of, source.pool->driver, source.pool->name, source.device->name});
  }
  return choice;
}

// Of the nodes at these positions. nullopt: a selector looks at what is a device's own, and
// `of_kinds`: each of these nodes is to stand for others.
std::optional<ClaimChoice> ChooseAmong(ClaimQuestion& question, std::span<const ClaimNode> nodes,
                                       std::vector<std::size_t> positions, bool of_kinds,
                                       const RequestShape* gpus) {
  ClaimChoice best;
  std::optional<SetRating> best_rating;
  int steps = 0;
  BestRankAndFewestFreeFirst(nodes, positions);
  for (const std::size_t i : positions) {
    if (steps > kMostChoiceSteps || (best_rating && nodes[i].rank > nodes[best.node].rank)) break;
    const NodeQuestion asked = question.On(nodes[i].devices->pools, nodes[i].devices->taken);
    const SetRater rater(nodes[i], asked, gpus);
    const PickedDevices picked = BestSet(
        asked.question, [&rater](std::span<const PickedDevice> set) { return rater.Rate(set); });
    steps += picked.steps + static_cast<int>(asked.prepared);
    if (of_kinds && question.sees_identity()) return std::nullopt;
    if (picked.end != SearchEnd::kFound) {
      if (!best_rating) best.end = Worse(best.end, picked.end);
      continue;
    }
    const SetRating rating = rater.RateAmongNodes(picked.devices);
    if (best_rating && !(rating < *best_rating)) continue;
    best_rating = rating;
    best = Chosen(i, asked, picked);
    if (rater.IsIdeal(picked.devices, rating)) break;
  }
  if (!best_rating && steps > kMostChoiceSteps) best.end = SearchEnd::kUnknown;
  return best;
}

}  // namespace

ClaimChoice ChooseForClaims(ClaimQuestion& question, std::span<const ClaimNode> nodes,
                            const RequestShape* gpus) {
  auto choice = ChooseAmong(question, nodes, OneOfEachKind(nodes, gpus), true, gpus);
  if (choice) return *std::move(choice);
  std::vector<std::size_t> all(nodes.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return *ChooseAmong(question, nodes, std::move(all), false, gpus);
}

}  // namespace berth
