// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_fill.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>
#include <utility>
#include <variant>

#include "scoring/devices/device_picker.h"
#include "scoring/explain/other_limits.h"
#include "scoring/gangs/gang_devices.h"
#include "scoring/scorers/scorers.h"

namespace berth {
namespace {

constexpr std::int64_t kMostFree = std::numeric_limits<int>::max();

}  // namespace

GangFill::GangFill(Engine& engine, std::shared_ptr<const Snapshot> from, const DomainTree& tree,
                   std::span<const GangClass> classes, GangDevices* devices,
                   Transaction& transaction)
    : engine_(engine),
      from_(std::move(from)),
      tree_(tree),
      classes_(classes),
      devices_(devices),
      transaction_(transaction),
      first_below_(tree.size() + 1, 0),
      below_(tree.size() - 1),
      tables_(classes.size()) {
  for (const GangClass& alike : classes) {
    all_.push_back(alike.count());
    room_.push_back(tree.SumUp(alike.room));
  }
  if (classes.size() > 1) SumAmounts();
  SumWorth();
  // Counting sort by parent; the cluster is its own and nobody's child.
  for (TopologyDomain v = 1; v < tree.size(); ++v) ++first_below_[tree.parent(v) + 1];
  for (std::size_t v = 1; v < first_below_.size(); ++v) first_below_[v] += first_below_[v - 1];
  std::vector<std::size_t> next(first_below_.begin(), first_below_.end() - 1);
  for (TopologyDomain v = 1; v < tree.size(); ++v) below_[next[tree.parent(v)]++] = v;
}

template <class NeededBy, class FreeOn>
GangFill::Amount GangFill::Sum(NeededBy needed_by, FreeOn free_on) const {
  Amount amount;
  for (const GangClass& alike : classes_) {
    amount.needed += alike.count() * needed_by(alike.shape());
  }
  std::vector<int> free(tree_.nodes(), 0);
  for (NodeIndex node = 0; node < free.size(); ++node) {
    const bool is_of_use = std::ranges::any_of(
        classes_, [node](const GangClass& alike) { return alike.room[node] > 0; });
    if (is_of_use) free[node] = free_on(transaction_.now()->node(node));
  }
  amount.free = tree_.SumUp(free);
  return amount;
}

void GangFill::SumAmounts() {
  const auto whole = [](const RequestShape& shape) -> std::int64_t {
    const auto* const gpus = std::get_if<WholeGpus>(&shape.gpus);
    return gpus == nullptr ? 0 : gpus->count;
  };
  // A place on a GPU with several users counts as one.
  amounts_.push_back(Sum(whole, [](const Node& node) {
    return std::popcount(IdleGpus(node)) + std::max(node.free_places(), 0);
  }));
  const auto milli = [](const RequestShape& shape) -> std::int64_t {
    return shape.is_share() ? shape.gpu_count() * shape.milli_per_gpu() : 0;
  };
  const std::int64_t of_whole = amounts_.front().needed * kMilliPerGpu;
  amounts_.push_back(Sum(milli, [](const Node& node) {
    const std::int64_t places = std::int64_t{std::max(node.free_places(), 0)} * kMilliPerGpu;
    return static_cast<int>(std::clamp<std::int64_t>(node.free_gpu_milli() + places, 0, kMostFree));
  }));
  amounts_.back().needed += of_whole;
  const auto cpu = [](const RequestShape& shape) { return shape.cpu_milli; };
  amounts_.push_back(Sum(cpu, [](const Node& node) {
    return static_cast<int>(std::clamp<std::int64_t>(node.free_cpu_milli(), 0, kMostFree));
  }));
}

void GangFill::SumWorth() {
  for (const GangClass& alike : classes_) {
    std::vector<double>& worth = worth_.emplace_back();
    const std::vector<TraitWish>& wishes = alike.shape().nodes.wishes;
    if (wishes.empty()) continue;
    if (engine_.profile(alike.shape())->WeightOf(kWorkloadClassScorer) == 0) continue;
    std::vector<double> of_nodes(tree_.nodes());
    for (NodeIndex node = 0; node < of_nodes.size(); ++node) {
      of_nodes[node] =
          alike.room[node] * WorthPerGpu(transaction_.now()->node(node).spec(), wishes);
    }
    worth = tree_.SumUp(of_nodes);
  }
}

bool GangFill::MayHoldAll(TopologyDomain domain) const {
  return std::ranges::all_of(
      amounts_, [domain](const Amount& amount) { return amount.needed <= amount.free[domain]; });
}

std::int64_t GangFill::Fits(TopologyDomain domain) const {
  std::int64_t fits = 0;
  for (std::size_t c = 0; c < all_.size(); ++c) fits += std::min(all_[c], room_[c][domain]);
  return fits;
}

double GangFill::LoadOf(TopologyDomain domain, const Counts& counts) const {
  double load = 0;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    if (counts[c] == 0) continue;
    if (room_[c][domain] == 0) return std::numeric_limits<double>::infinity();
    load += static_cast<double>(counts[c]) / static_cast<double>(room_[c][domain]);
  }
  return load;
}

double GangFill::WorthOf(TopologyDomain domain, const Counts& counts) const {
  double worth = 0, gpus = 0;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    const auto taken =
        static_cast<double>(counts[c] * std::max<std::int64_t>(classes_[c].milli, 1));
    gpus += taken;
    if (worth_[c].empty() || room_[c][domain] == 0) continue;
    worth += taken * worth_[c][domain] / static_cast<double>(room_[c][domain]);
  }
  return gpus > 0 ? worth / gpus : 0;
}

bool GangFill::Holds(TopologyDomain domain, const Counts& counts) const {
  for (std::size_t c = 0; c < counts.size(); ++c) {
    if (counts[c] > room_[c][domain]) return false;
  }
  return true;
}

std::int64_t GangFill::HeldBy(TopologyDomain domain, const Counts& counts) const {
  std::int64_t held = 0;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    held += std::min(counts[c], room_[c][domain]) * std::max<std::int64_t>(classes_[c].milli, 1);
  }
  return held;
}

std::vector<NodeIndex> GangFill::NodesIn(TopologyDomain domain) const {
  std::vector<NodeIndex> nodes;
  std::vector<TopologyDomain> open = {domain};
  while (!open.empty()) {
    const TopologyDomain vertex = open.back();
    open.pop_back();
    if (vertex >= tree_.NodeVertex(0) && tree_.nodes() > 0) {
      nodes.push_back(vertex - tree_.NodeVertex(0));
      continue;
    }
    const auto below = Below(vertex);
    open.insert(open.end(), below.rbegin(), below.rend());
  }
  return nodes;
}

bool GangFill::MayMeet(TopologyDomain domain, std::span<const RoleNeed> needs) const {
  Counts fits(all_.size());
  for (std::size_t c = 0; c < fits.size(); ++c) fits[c] = std::min(all_[c], room_[c][domain]);
  return MeetsRoles(needs, fits);
}

GangFill::Counts GangFill::Needed(TopologyDomain domain, std::span<const RoleNeed> needs) const {
  Counts counts(all_.size(), 0);
  for (const RoleNeed& need : needs) {
    std::int64_t missing = need.members;
    for (const std::size_t c : need.classes) {
      counts[c] = std::min({missing, all_[c], room_[c][domain]});
      missing -= counts[c];
    }
  }
  return counts;
}

std::vector<ClassPlace> GangFill::Fill(TopologyDomain domain, bool flat,
                                       std::span<const RoleNeed> needs) {
  places_.clear();
  put_.assign(all_.size(), 0);
  if (!needs.empty()) {
    left_ = Needed(domain, needs);
    FillLeft(domain, flat);
  }
  left_ = all_;
  for (std::size_t c = 0; c < all_.size(); ++c) left_[c] -= put_[c];
  FillLeft(domain, flat);
  return std::move(places_);
}

void GangFill::FillLeft(TopologyDomain domain, bool flat) {
  if (flat) {
    FillNodes(NodesIn(domain));
  } else {
    Spread(domain);
  }
}

std::optional<TopologyDomain> GangFill::Next(std::span<const TopologyDomain> domains,
                                             const std::vector<char>& used) const {
  // Named ones first; then those that hold all, the tightest first but for wishes; then by how much
  // they hold, and then by wishes.
  using Key = std::tuple<bool, bool, double, double>;
  std::optional<std::pair<Key, TopologyDomain>> best;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const TopologyDomain domain = domains[i];
    const auto held = static_cast<double>(HeldBy(domain, left_));
    if (used[i] != 0 || held == 0) continue;
    const double load = LoadOf(domain, left_);
    const double worth = WorthOf(domain, left_);
    const bool holds = Holds(domain, left_) && load <= 1;
    const Key key = holds ? Key{!tree_.named(domain), false, -load - worth, 0}
                          : Key{!tree_.named(domain), true, -held, -worth};
    if (!best || std::pair(key, domain) < *best) best.emplace(key, domain);
  }
  if (!best) return std::nullopt;
  return best->second;
}

void GangFill::Spread(TopologyDomain domain) {
  const auto below = Below(domain);
  if (below.empty()) return;
  if (below.front() >= tree_.NodeVertex(0)) {
    std::vector<NodeIndex> nodes;
    for (const TopologyDomain vertex : below) nodes.push_back(vertex - tree_.NodeVertex(0));
    FillNodes(nodes);
    return;
  }
  std::vector<char> used(below.size(), 0);
  while (const auto next = Next(below, used)) {
    used[*next - below.front()] = 1;  // children of a domain follow each other
    Spread(*next);
  }
}

void GangFill::FillNodes(std::span<const NodeIndex> nodes) {
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    if (left_[c] > 0) FillWith(c, nodes);
  }
}

PlanTable& GangFill::TableOf(std::size_t c) {
  if (!tables_[c]) tables_[c].emplace(engine_.TableFor(from_, classes_[c].shape()));
  tables_[c]->Follow(transaction_.now());
  return *tables_[c];
}

bool GangFill::HasDevices(std::size_t c, NodeIndex node) const {
  if (classes_[c].claims == kNoClaims) return true;
  std::vector<int> members(devices_->kinds(), 0);
  ++members[static_cast<std::size_t>(classes_[c].claims)];
  for (const ClassPlace& place : places_) {
    const int claims = classes_[place.of_class].claims;
    if (place.node == node && claims != kNoClaims) ++members[static_cast<std::size_t>(claims)];
  }
  return devices_->Has(node, members);
}

bool GangFill::Put(std::size_t c, NodeIndex node, PlanTable& table) {
  if (!HasDevices(c, node)) return false;
  if (!LackOf(transaction_.now()->node(node), *classes_[c].pod).empty()) return false;
  const std::int64_t position = put_[c];
  Placement placement = table.PlaceOn(node);
  PodRequest pod = *classes_[c].pod;
  // Which member it will be is decided in the end.
  if (position > 0) pod.id.uid += "/" + std::to_string(position);
  if (!transaction_.Put(pod, placement)) return false;
  table.Follow(transaction_.now());
  places_.push_back({c, node, std::move(placement)});
  --left_[c];
  ++put_[c];
  return true;
}

void GangFill::FillWith(std::size_t c, std::span<const NodeIndex> nodes) {
  PlanTable& table = TableOf(c);
  std::vector<NodeIndex> fresh;
  for (const NodeIndex node : nodes) {
    if (classes_[c].room[node] > 0 && table.Fits(node)) fresh.push_back(node);
  }
  std::vector<std::pair<std::int64_t, NodeIndex>> heap;  // the best last, by heap rules
  const std::vector<std::int64_t> ranks = table.Ranks(fresh);
  for (std::size_t i = 0; i < fresh.size(); ++i) heap.emplace_back(ranks[i], fresh[i]);
  const auto worse = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  };
  std::ranges::make_heap(heap, worse);

  // Nodes that have members by now are compared anew, with the best of the others.
  std::vector<NodeIndex> candidates;
  std::vector<int> room;  // of these, and theirs alone
  while (left_[c] > 0) {
    const bool has_fresh = !heap.empty();
    if (has_fresh) {
      candidates.push_back(heap.front().second);
      room.push_back(classes_[c].room[heap.front().second]);
    }
    if (candidates.empty()) return;
    std::size_t best = 0;
    if (candidates.size() > 1) {
      const std::vector<std::int64_t> now = table.Ranks(candidates);
      for (std::size_t i = 1; i < now.size(); ++i) {
        if (std::pair(-now[i], candidates[i]) < std::pair(-now[best], candidates[best])) best = i;
      }
    }
    const NodeIndex node = candidates[best];
    const bool was_fresh = has_fresh && best + 1 == candidates.size();
    if (was_fresh) {
      std::ranges::pop_heap(heap, worse);
      heap.pop_back();
    } else if (has_fresh) {
      candidates.pop_back();
      room.pop_back();
    }
    if (Put(c, node, table) && --room[best] > 0 && table.Fits(node)) continue;
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(best));
    room.erase(room.begin() + static_cast<std::ptrdiff_t>(best));
  }
}

}  // namespace berth
