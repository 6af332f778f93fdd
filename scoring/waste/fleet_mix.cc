// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/fleet_mix.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

namespace berth {
namespace {

constexpr double kWorthExponent = 4;

// Merges a class into one that asks for the same; the memory is the mean of both.
void Join(RequestClass& into, const RequestClass& from) {
  const double weight = into.weight + from.weight;
  const double memory = static_cast<double>(into.shape.memory_bytes) * into.weight +
                        static_cast<double>(from.shape.memory_bytes) * from.weight;
  into.shape.memory_bytes = static_cast<std::int64_t>(memory / weight);
  into.weight = weight;
}

}  // namespace

FleetModels ModelsOf(const Fleet& fleet) {
  FleetModels names;
  for (const NodeKind& kind : fleet) names.insert(kind.gpu_model);
  return names;
}

RequestMix OnFleet(RequestMix mix, const FleetModels& models) {
  const auto is_missing = [&models](const std::string& model) { return !models.contains(model); };
  std::erase_if(mix, [&](RequestClass& entry) {
    if (entry.shape.models.empty()) return false;
    std::erase_if(entry.shape.models, is_missing);
    return entry.shape.models.empty();
  });
  std::map<RequestShape, std::size_t> first;  // class by what it asks for, but for the memory
  std::size_t kept = 0;
  double sum = 0;
  for (std::size_t i = 0; i < mix.size(); ++i) {
    RequestShape key = mix[i].shape;
    key.memory_bytes = 0;
    sum += mix[i].weight;
    const auto [known, is_new] = first.emplace(std::move(key), kept);
    if (!is_new) {
      Join(mix[known->second], mix[i]);
    } else if (kept != i) {
      mix[kept++] = std::move(mix[i]);
    } else {
      ++kept;
    }
  }
  const bool is_whole = kept == mix.size() && sum > 1 - 1e-9;
  if (is_whole) return mix;  // as it was, to the last bit
  mix.resize(kept);
  for (RequestClass& entry : mix) entry.weight /= sum;
  std::ranges::stable_sort(mix, std::greater<>(), &RequestClass::weight);
  return mix;
}

CardWorth WorthOf(const RequestMix& mix, const Fleet& fleet) {
  CardWorth worth;
  double cards = 0, memory_mib = 0;
  for (const NodeKind& kind : fleet) {
    if (kind.state.card_mib == 0) continue;
    const double here = static_cast<double>(kind.nodes) * kind.state.count;
    cards += here;
    memory_mib += here * static_cast<double>(kind.state.card_mib);
  }
  if (memory_mib <= 0) return worth;
  worth.mean_card_mib = memory_mib / cards;
  double compute = 0, memory = 0;
  for (const RequestClass& entry : mix) {
    const double asked = entry.shape.gpu_count() * entry.shape.milli_per_gpu();
    const std::int64_t says = ShareMemoryMib(entry.shape);
    compute += entry.weight * asked / kMilliPerGpu;
    memory += entry.weight * (says == 0 ? asked / kMilliPerGpu
                                        : entry.shape.gpu_count() * static_cast<double>(says) /
                                              worth.mean_card_mib);
    worth.counts_memory = worth.counts_memory || says > 0;
  }
  if (!worth.counts_memory) return worth;
  const double ratio = std::pow(memory / compute, kWorthExponent);
  worth.compute = 1 / (1 + ratio);
  worth.memory = ratio / (1 + ratio);
  return worth;
}

}  // namespace berth
