// SPDX-License-Identifier: Apache-2.0
#include "scoring/claims/set_rating.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include "scoring/claims/claim_choice.h"
#include "scoring/devices/device_picker.h"
#include "scoring/devices/neighbours.h"
#include "scoring/mig/mig_tables.h"
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

}  // namespace

SetRater::SetRater(const ClaimNode& node, const NodeQuestion& question, const RequestShape* gpus)
    : node_(node), owners_(question.owners) {
  std::vector<const cel::AttributeValue*> numas, roots;
  for (std::size_t i = 0; i < question.sources.size(); ++i) {
    const NodeQuestion::Source& source = question.sources[i];
    Facts facts;
    FindMig(source.pool->name, source.device->name, facts);
    if (facts.cut == nullptr) {
      const cel::Device& seen = source.device->seen;
      facts.gpu = GpuOf(node, seen);
      facts.numa = NumberOf(AttributeOf(seen, "numaNode"), numas);
      facts.root = NumberOf(AttributeOf(seen, "pcieRoot"), roots);
      if (!question.question.devices[i].taken) ++free_[facts.numa];
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

GpuMask SetRater::PickFor(const RequestShape& gpus, const NodeQuestion& question) const {
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

GpuMask SetRater::GpusOf(std::span<const PickedDevice> set) const {
  GpuMask gpus = 0;
  for (const PickedDevice& picked : set) {
    const int gpu = facts_[static_cast<std::size_t>(picked.device)].gpu;
    if (gpu >= 0) gpus |= GpuBit(gpu);
  }
  return gpus;
}

void SetRater::FindMig(const std::string& pool, const std::string& device, Facts& facts) const {
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

SetRater::Loss SetRater::LossOf(std::span<const PickedDevice> set) const {
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
  return loss;
}

std::int64_t SetRater::LinkDeficit(std::span<const PickedDevice> set) const {
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

std::int64_t SetRater::Spread(std::span<const PickedDevice> set) const {
  std::set<std::pair<int, int>> numas, roots;  // of each pod
  for (const PickedDevice& picked : set) {
    const Facts& facts = facts_[static_cast<std::size_t>(picked.device)];
    if (facts.numa >= 0) numas.emplace(OwnerOf(picked), facts.numa);
    if (facts.root >= 0) roots.emplace(OwnerOf(picked), facts.root);
  }
  return static_cast<std::int64_t>(numas.size()) * kGroup + static_cast<std::int64_t>(roots.size());
}

std::int64_t SetRater::Broken(std::span<const PickedDevice> set) const {
  std::map<int, std::int64_t> taken;
  for (const PickedDevice& picked : set) {
    const Facts& facts = facts_[static_cast<std::size_t>(picked.device)];
    if (facts.cut == nullptr) ++taken[facts.numa];
  }
  std::int64_t broken = 0;
  for (const auto& [numa, count] : taken) {
    const std::int64_t free = free_.at(numa);
    broken += free * free - (free - count) * (free - count);
  }
  return broken;
}

SetRating SetRater::Rate(std::span<const PickedDevice> set) const {
  const Loss loss = LossOf(set);
  const bool is_picked = picked_ == 0 || GpusOf(set) == picked_;
  return {loss.millionths, is_picked ? 0 : 1, LinkDeficit(set), Spread(set) + loss.free_units,
          Broken(set)};
}

SetRating SetRater::RateAmongNodes(std::span<const PickedDevice> set) const {
  SetRating rating = Rate(set);
  rating[1] = 0;
  return rating;
}

bool SetRater::IsIdeal(std::span<const PickedDevice> set, const SetRating& rating) const {
  const auto count = static_cast<std::int64_t>(set.size());
  const bool whole = std::ranges::none_of(set, [this](const PickedDevice& picked) {
    return facts_[static_cast<std::size_t>(picked.device)].cut != nullptr;
  });
  return whole && rating[2] == 0 && rating[3] < 2 * kGroup && rating[4] == count * count;
}

}  // namespace berth
