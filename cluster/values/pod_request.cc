// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/pod_request.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/random.h"

namespace berth {

int MigSlices::count() const {
  int sum = 0;
  for (const MigWant& want : wants) sum += want.count;
  return sum;
}

int RequestShape::gpu_count() const {
  if (const auto* whole = std::get_if<WholeGpus>(&gpus)) return whole->count;
  const auto* share = std::get_if<GpuShare>(&gpus);
  return share != nullptr ? share->count : 0;
}

int RequestShape::milli_per_gpu() const {
  if (const auto* share = std::get_if<GpuShare>(&gpus)) {
    return share->milli > 0 ? share->milli : share->memory_milli;
  }
  return std::holds_alternative<WholeGpus>(gpus) ? kMilliPerGpu : 0;
}

bool RequestShape::Admits(std::string_view model) const {
  if (!models.empty() && std::ranges::find(models, model) == models.end()) return false;
  return model_rules.Admit(model);
}

bool RequestShape::AdmitsGpu(std::string_view uuid) const {
  if (gpu_rules.empty()) return true;
  if (uuid.empty()) return false;
  const auto has = [&](bool refused) {
    const auto rule =
        std::ranges::lower_bound(gpu_rules, std::pair(refused, uuid), {}, [](const GpuRule& other) {
          return std::pair<bool, std::string_view>(other.refused, other.uuid);
        });
    return rule != gpu_rules.end() && rule->refused == refused && rule->uuid == uuid;
  };
  const bool accepts_few = !gpu_rules.front().refused;
  return !has(true) && (!accepts_few || has(false));
}

std::size_t HashValue(const RequestShape& shape) {
  std::uint64_t hash = Mix64(static_cast<std::uint64_t>(shape.cpu_milli));
  const auto add = [&hash](std::uint64_t value) { hash = Mix64(hash ^ value); };
  add(static_cast<std::uint64_t>(shape.memory_bytes));
  if (shape.ephemeral_bytes > 0) add(static_cast<std::uint64_t>(shape.ephemeral_bytes));
  add(shape.gpus.index());
  add(static_cast<std::uint64_t>(shape.gpu_count()));
  add(static_cast<std::uint64_t>(shape.milli_per_gpu()));
  if (const auto* share = std::get_if<GpuShare>(&shape.gpus)) {
    add(static_cast<std::uint64_t>(share->memory_mib));
    if (share->memory_milli > 0) add(static_cast<std::uint64_t>(share->memory_milli));
  }
  if (const MigSlices* mig = shape.mig()) {
    for (const MigWant& want : mig->wants) {
      const MigProfile profile = want.profile.value_or(MigProfile{});
      add(static_cast<std::uint64_t>(profile.compute_slices) << 32 |
          static_cast<std::uint64_t>(profile.memory_gb) << 8 |
          static_cast<std::uint64_t>(profile.extension));
      add(static_cast<std::uint64_t>(want.count) << 8 |
          static_cast<std::uint64_t>(want.min_slices) << 1 | (want.shared ? 1U : 0U));
      add(static_cast<std::uint64_t>(want.min_memory_mib));
    }
  }
  for (const std::string& model : shape.models) add(std::hash<std::string>{}(model));
  for (const ModelRule& rule : shape.model_rules.rules()) {
    add(std::hash<std::string>{}(rule.part) + (rule.refused ? 1U : 0U));
  }
  for (const GpuRule& rule : shape.gpu_rules) {
    add(std::hash<std::string>{}(rule.uuid) + (rule.refused ? 1U : 0U));
  }
  if (!shape.gpu_resource.empty()) add(std::hash<std::string>{}(shape.gpu_resource));
  if (!shape.share_agent.empty()) add(std::hash<std::string>{}(shape.share_agent));
  if (shape.isolation != Isolation::kUnsaid) add(static_cast<std::uint64_t>(shape.isolation));
  if (shape.min_gpu_memory_mib > 0) add(static_cast<std::uint64_t>(shape.min_gpu_memory_mib));
  if (shape.one_per_container) add(1);
  if (shape.spread != Spread::kNone) {
    add(static_cast<std::uint64_t>(shape.spread));
    add(std::hash<std::string>{}(shape.workload));
  }
  for (const TraitWish& wish : shape.nodes.wishes) {
    add(std::hash<std::string>{}(wish.trait) + static_cast<std::uint64_t>(wish.weight));
  }
  for (const std::string& trait : shape.nodes.required) add(std::hash<std::string>{}(trait));
  for (const std::string& trait : shape.nodes.forbidden) add(std::hash<std::string>{}(trait) + 1);
  if (!shape.nodes.profile.empty()) add(std::hash<std::string>{}(shape.nodes.profile));
  if (shape.beside_nic) add(1);
  for (const LabelSelector* const selector : {&shape.neighbours.near, &shape.neighbours.far}) {
    for (const LabelRequirement& requirement : *selector) {
      add(std::hash<std::string>{}(requirement.key));
      for (const std::string& value : requirement.values) add(std::hash<std::string>{}(value));
    }
  }
  if (const LinkAsk& links = shape.links; links != LinkAsk{}) {
    add(static_cast<std::uint64_t>(links.link) << 16 | static_cast<std::uint64_t>(links.numa) << 8 |
        static_cast<std::uint64_t>(links.pattern));
    add(static_cast<std::uint64_t>(links.min_megabytes_per_s));
  }
  return static_cast<std::size_t>(hash);
}

}  // namespace berth
