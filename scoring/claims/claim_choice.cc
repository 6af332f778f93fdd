// SPDX-License-Identifier: Apache-2.0
#include "scoring/claims/claim_choice.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "scoring/claims/set_rating.h"

namespace berth {
namespace {

// About: a device that is published no more may be taken too.
std::size_t FreeOn(const NodeDevices& node) {
  std::size_t published = 0;
  for (const DevicePool& pool : node.pools) {
    for (const auto& slice : pool.slices) published += slice->devices.size();
  }
  return published - std::min(published, node.taken.size());
}

std::vector<std::size_t> FewestFreeFirst(std::span<const ClaimNode> nodes) {
  using Order = std::tuple<std::size_t, std::string_view, std::size_t>;  // free, name, position
  std::vector<Order> order;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    order.emplace_back(FreeOn(*nodes[i].devices), nodes[i].name, i);
  }
  std::ranges::sort(order);
  std::vector<std::size_t> sorted;
  for (const Order& node : order) sorted.push_back(std::get<2>(node));
  return sorted;
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

}  // namespace

ClaimChoice ChooseForClaims(ClaimQuestion& question, std::span<const ClaimNode> nodes) {
  ClaimChoice best;
  std::optional<SetRating> best_rating;
  int steps = 0;
  for (const std::size_t i : FewestFreeFirst(nodes)) {
    if (steps > kMostChoiceSteps) break;
    const NodeQuestion asked = question.On(nodes[i].devices->pools, nodes[i].devices->taken);
    const SetRater rater(nodes[i], asked);
    const PickedDevices picked = BestSet(
        asked.question, [&rater](std::span<const PickedDevice> set) { return rater.Rate(set); });
    steps += picked.steps;
    if (picked.end != SearchEnd::kFound) {
      if (!best_rating) best.end = Worse(best.end, picked.end);
      continue;
    }
    const SetRating rating = rater.Rate(picked.devices);
    if (best_rating && !(rating < *best_rating)) continue;
    best_rating = rating;
    best = Chosen(i, asked, picked);
    if (rater.IsIdeal(picked.devices, rating)) break;
  }
  if (!best_rating && steps > kMostChoiceSteps) best.end = SearchEnd::kUnknown;
  return best;
}

}  // namespace berth
