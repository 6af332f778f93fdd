// SPDX-License-Identifier: Apache-2.0
#include "scoring/claims/claim_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "cluster/values/pod_request.h"
#include "scoring/claims/device_search.h"
#include "scoring/devices/device_picker.h"
#include "scoring/devices/neighbours.h"
#include "scoring/mig/mig_tables.h"
#include "topology/gpu_mask.h"
#include "topology/links/gpu_links.h"

namespace berth {
namespace {

constexpr std::int64_t kGroup = 1000;  // more than a node has PCIe roots

constexpr std::string_view kOfKubernetes = "resource.kubernetes.io";

// Under the domain of the driver, or under Kubernetes' own.
const cel::AttributeValue* AttributeOf(const cel::Device& device, std::string_view id) {
  const cel::AttributeValue* const own = device.attribute(device.driver(), id);
  return own != nullptr ? own : device.attribute(kOfKubernetes, id);
}

// The number of a value among those seen so far; -1 where there is none.
int NumberOf(const cel::AttributeValue* value, std::vector<const cel::AttributeValue*>& seen) {
  if (value == nullptr) return -1;
  const auto known = std::ranges::find_if(
      seen, [value](const cel::AttributeValue* other) { return *other == *value; });
  const auto number = static_cast<int>(known - seen.begin());
  if (known == seen.end()) seen.push_back(value);
  return number;
}

int GpuOf(const ClaimNode& node, const cel::Device& device) {
  const cel::AttributeValue* const value = device.attribute(device.driver(), "uuid");
  const auto* const uuid = value == nullptr ? nullptr : std::get_if<std::string>(value);
  if (node.node == nullptr || uuid == nullptr || uuid->empty()) return -1;
  const auto& gpus = node.node->spec().gpus;
  const auto gpu = std::ranges::find(gpus, *uuid, &GpuSpec::uuid);
  return gpu == gpus.end() ? -1 : static_cast<int>(gpu - gpus.begin());
}

// SetRater: how good a set of a node's devices is for the claims of a pod, by the order that
// claim_choice.h gives. A pure function of what it is made of, which has to live longer.
class SetRater {
 public:
  // gpus: see ChooseForClaims.
  SetRater(const ClaimNode& node, const NodeQuestion& question, const RequestShape* gpus)
      : node_(node), asked_(question.question), owners_(question.owners) {
    std::vector<const cel::AttributeValue*> numas, roots;
    for (std::size_t i = 0; i < question.sources.size(); ++i) {
      const NodeQuestion::Source& source = question.sources[i];
      Facts facts;
      facts.device = source.device;
      FindMig(source.pool->name, source.device->name, facts);
      if (facts.cut == nullptr) {
        const cel::Device& seen = source.device->seen;
        facts.gpu = GpuOf(node, seen);
        facts.numa = NumberOf(AttributeOf(seen, "numaNode"), numas);
        facts.root = NumberOf(AttributeOf(seen, "pcieRoot"), roots);
        const SearchDevice& device = question.question.devices[i];
        facts.is_idle = !device.taken && !device.in_use;
        if (facts.is_idle) ++free_[facts.numa];
      }
      facts_.push_back(facts);
    }
    if (gpus != nullptr) picked_ = PickFor(*gpus, question);
    if (node.mig == nullptr) return;
    for (const OfferedGpu& gpu : *node.mig) {
      MigSet& taken = taken_mig_[&gpu];
      taken = gpu.taken;
      for (std::size_t i = 0; i < gpu.devices.size(); ++i) {
        if (node.devices->taken.contains({gpu.pool, gpu.devices[i]})) taken |= MigSet{1} << i;
      }
    }
  }

  [[nodiscard]] SetRating Rate(std::span<const PickedDevice> set) const {
    const Loss loss = LossOf(set);
    const bool is_picked = picked_ == 0 || GpusOf(set) == picked_;
    return {loss.millionths, is_picked ? 0 : 1, LinkDeficit(set), Spread(set) + loss.free_units,
            Broken(set)};
  }

  // To compare it with sets of other nodes: there is one on each that the DevicePicker takes.
  [[nodiscard]] SetRating RateAmongNodes(std::span<const PickedDevice> set) const {
    SetRating rating = Rate(set);
    rating[1] = 0;
    return rating;
  }

  // Whether no node can have a better set but for its PCIe roots: whole devices, all that are free
  // of one NUMA group, with the best links.
  [[nodiscard]] bool IsIdeal(std::span<const PickedDevice> set, const SetRating& rating) const {
    const auto count = static_cast<std::int64_t>(set.size());
    const bool whole = std::ranges::none_of(set, [this](const PickedDevice& picked) {
      return facts_[static_cast<std::size_t>(picked.device)].cut != nullptr ||
             asked_.devices[static_cast<std::size_t>(picked.device)].divisible;
    });
    return whole && rating[2] == 0 && rating[3] < 2 * kGroup && rating[4] == count * count;
  }

 private:
  // What is known of a device of the question.
  struct Facts {
    int gpu = -1;                     // of the node; -1 = unknown
    int numa = -1, root = -1;         // as numbers of their own; -1 = not said
    const OfferedGpu* cut = nullptr;  // the GPU that it is a MIG device of
    int placement = 0;
    bool is_idle = false;  // nobody has it or a part of it
    const PublishedDevice* device = nullptr;
  };
  static constexpr std::int64_t kWholeGpu = 1'000'000;
  struct Loss {
    std::int64_t millionths = 0;  // of a GPU
    std::int64_t free_units = 0;
  };

  // What the DevicePicker takes of the GPUs that suit some request; 0: nothing, or that is not
  // known.
  [[nodiscard]] GpuMask PickFor(const RequestShape& gpus, const NodeQuestion& question) const {
    if (node_.node == nullptr || !node_.node->spec().links.known()) return 0;
    const DeviceQuestion& asked = question.question;
    const auto suits = [&asked](int device) {
      for (int claim = 0; claim < std::ssize(asked.claims); ++claim) {
        const auto& requests = asked.claims[static_cast<std::size_t>(claim)].requests;
        for (int request = 0; request < std::ssize(requests); ++request) {
          if (asked.match({claim, request, 0}, device) == DeviceMatch::kYes) return true;
        }
      }
      return false;
    };
    const GpuMask idle = IdleGpus(*node_.node);
    GpuMask free = 0;
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      const bool is_free = facts_[i].gpu >= 0 && !asked.devices[i].taken;
      if (is_free && suits(static_cast<int>(i))) free |= GpuBit(facts_[i].gpu) & idle;
    }
    return ChooseSuiting(*node_.node, free, gpus, HoldersOf(*node_.node, idle));
  }

  [[nodiscard]] GpuMask GpusOf(std::span<const PickedDevice> set) const {
    GpuMask gpus = 0;
    for (const PickedDevice& picked : set) {
      const int gpu = facts_[static_cast<std::size_t>(picked.device)].gpu;
      if (gpu >= 0) gpus |= GpuBit(gpu);
    }
    return gpus;
  }

  void FindMig(const std::string& pool, const std::string& device, Facts& facts) const {
    if (node_.mig == nullptr) return;
    for (const OfferedGpu& gpu : *node_.mig) {
      if (gpu.pool != pool) continue;
      const auto name = std::ranges::find(gpu.devices, device);
      if (name == gpu.devices.end()) continue;
      facts.cut = &gpu;
      facts.placement = static_cast<int>(name - gpu.devices.begin());
      return;
    }
  }

  [[nodiscard]] Loss LossOf(std::span<const PickedDevice> set) const {
    Loss loss;
    std::map<const OfferedGpu*, MigSet> taken;
    for (const PickedDevice& picked : set) {
      const Facts& facts = facts_[static_cast<std::size_t>(picked.device)];
      if (facts.cut == nullptr) continue;
      const MigProduct& product = *facts.cut->product;
      MigSet& of_gpu = taken.try_emplace(facts.cut, taken_mig_.at(facts.cut)).first->second;
      if (const auto tables = MigTablesOf(facts.cut->product)) {
        loss.millionths += std::llround(tables->LossGpus(of_gpu, facts.placement) * 1e6);
      }
      loss.free_units += product.memory_units() - std::popcount(product.UnitsOf(of_gpu));
      of_gpu |= MigSet{1} << facts.placement;
    }
    std::map<int, std::vector<std::int64_t>> left;  // of divisible devices
    for (const PickedDevice& picked : set) {
      const SearchDevice& device = asked_.devices[static_cast<std::size_t>(picked.device)];
      if (!device.divisible) continue;
      const auto [of_device, is_first] = left.try_emplace(picked.device, device.left);
      if (is_first && !device.in_use) loss.millionths += kWholeGpu;
      const std::vector<std::int64_t> part = asked_.part(picked.of, picked.device);
      for (std::size_t i = 0; i < part.size(); ++i) of_device->second[i] -= part[i];
    }
    for (const auto& [device, of_device] : left)
      loss.free_units += HundredthsLeft(device, of_device);
    return loss;
  }

  // Of a divisible device what is left of its scarcest capacity.
  [[nodiscard]] std::int64_t HundredthsLeft(int device,
                                            const std::vector<std::int64_t>& left) const {
    const DeviceCapacities& all = facts_[static_cast<std::size_t>(device)].device->capacities();
    double least = 1;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const double there_is = static_cast<double>(std::max<std::int64_t>(all[i].there_is, 1));
      least = std::min(least, static_cast<double>(left[i]) / there_is);
    }
    return std::llround(least * 100);
  }

  // Both of the devices of one pod, summed over the pods.
  [[nodiscard]] std::int64_t LinkDeficit(std::span<const PickedDevice> set) const {
    constexpr int kBest = 1000;
    if (node_.node == nullptr || !node_.node->spec().links.known()) return 0;
    std::map<int, GpuMask> masks;  // by pod
    for (const PickedDevice& picked : set) {
      const int gpu = facts_[static_cast<std::size_t>(picked.device)].gpu;
      if (gpu >= 0) masks[OwnerOf(picked)] |= GpuBit(gpu);
    }
    std::int64_t deficit = 0;
    for (const auto& [pod, mask] : masks) {
      if (std::popcount(mask) > 1) deficit += kBest - node_.node->spec().links.quality(mask);
    }
    return deficit;
  }

  [[nodiscard]] std::int64_t Spread(std::span<const PickedDevice> set) const {
    std::set<std::pair<int, int>> numas, roots;  // of each pod
    for (const PickedDevice& picked : set) {
      const Facts& facts = facts_[static_cast<std::size_t>(picked.device)];
      if (facts.numa >= 0) numas.emplace(OwnerOf(picked), facts.numa);
      if (facts.root >= 0) roots.emplace(OwnerOf(picked), facts.root);
    }
    return static_cast<std::int64_t>(numas.size()) * kGroup +
           static_cast<std::int64_t>(roots.size());
  }

  [[nodiscard]] int OwnerOf(const PickedDevice& picked) const {
    return owners_.empty() ? 0 : owners_[static_cast<std::size_t>(picked.of.claim)];
  }

  [[nodiscard]] std::int64_t Broken(std::span<const PickedDevice> set) const {
    std::map<int, std::int64_t> taken;
    std::set<int> seen;
    for (const PickedDevice& picked : set) {
      const Facts& facts = facts_[static_cast<std::size_t>(picked.device)];
      const bool is_new =
          facts.cut == nullptr && facts.is_idle && seen.insert(picked.device).second;
      if (is_new) ++taken[facts.numa];
    }
    std::int64_t broken = 0;
    for (const auto& [numa, count] : taken) {
      const std::int64_t free = free_.at(numa);
      broken += free * free - (free - count) * (free - count);
    }
    return broken;
  }

  const ClaimNode& node_;
  const DeviceQuestion& asked_;
  const std::vector<int>& owners_;  // by claim
  std::vector<Facts> facts_;        // by device of the question
  GpuMask picked_ = 0;
  std::map<int, std::int64_t> free_;                      // whole devices, by NUMA group
  std::map<const OfferedGpu*, std::uint64_t> taken_mig_;  // placements
};

// About: a device that is published no more may be taken too.
std::size_t FreeOn(const NodeDevices& node) {
  std::size_t published = 0;
  for (const DevicePool& pool : node.pools) published += pool.devices;
  return published - std::min(published, node.taken.size() + node.parts.size());
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

// Of nodes that are alike the first by name: it is as good as any of them.
std::vector<std::size_t> OneOfEachKind(std::span<const ClaimNode> nodes, const RequestShape* gpus) {
  std::map<std::pair<int, Digest>, std::vector<std::size_t>> kinds;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const ClaimNode& node = nodes[i];
    // Whether its pods make a difference between it and nodes whose devices are alike.
    const bool has_neighbours =
        gpus != nullptr && node.node != nullptr && HasNeighbours(*node.node, *gpus);
    if (!node.devices->likeness || has_neighbours) {
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

ClaimChoice Chosen(std::size_t node, const NodeQuestion& question, const PickedDevices& picked) {
  ClaimChoice choice{.end = SearchEnd::kFound, .node = node};
  for (const PickedDevice& each : picked.devices) {
    const NodeQuestion::Source& source = question.sources[static_cast<std::size_t>(each.device)];
    ChosenDevice& chosen = choice.devices.emplace_back(
        ChosenDevice{each.of, source.pool->driver, source.pool->name, source.device->name});
    if (!source.device->divisible) continue;
    const std::vector<std::int64_t> taken = question.question.part(each.of, each.device);
    chosen.part.emplace();
    for (std::size_t i = 0; i < taken.size(); ++i) {
      chosen.part->emplace(source.device->capacities()[i].name, taken[i]);
    }
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
    const NodeDevices& there = *nodes[i].devices;
    const NodeQuestion asked = question.On(there.pools, there.taken, there.parts);
    const SetRater rater(nodes[i], asked, gpus);
    const PickedDevices picked = BestSet(
        asked.question, [&rater](std::span<const PickedDevice> set) { return rater.Rate(set); });
    steps += picked.steps + static_cast<int>(asked.prepared);
    if (of_kinds && question.sees_identity()) return std::nullopt;
    if (picked.end != SearchEnd::kFound) {
      if (!best_rating) best.end = std::max(best.end, picked.end);  // the one that says more
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
  return *ChooseAmong(question, nodes, UpTo(nodes.size()), false, gpus);
}

}  // namespace berth
