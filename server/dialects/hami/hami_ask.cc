// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/hami/hami_ask.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/wire/pod/pod_needs.h"

namespace berth::dialects {
namespace {

using wire::ContainerSpec;
using wire::PodParts;

constexpr std::string_view kModeKey = kHamiAskKeys[0];
constexpr std::string_view kUseTypeKey = kHamiAskKeys[1], kNoUseTypeKey = kHamiAskKeys[2];
constexpr std::string_view kNumaBindKey = kHamiAskKeys[3];
constexpr std::string_view kUseUuidKey = kHamiAskKeys[4], kNoUseUuidKey = kHamiAskKeys[5];
// Which profile: Berth does not read it.
constexpr std::string_view kProfileKey = kHamiAskKeys[6];
constexpr auto kMigChoiceKeys = std::span(kHamiAskKeys).subspan(3);  // numa-bind neither
constexpr auto kUuidKeys = std::span(kHamiAskKeys).subspan(4, 2);

// "A100, H100": in lower case.
Result<std::set<std::string>> WordsOf(const PodParts& parts, std::string_view key) {
  BERTH_TRY(const std::set<std::string> listed, ListIn(parts, key));
  std::set<std::string> words;
  for (std::string word : listed) {
    std::ranges::transform(word, word.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    words.insert(std::move(word));
  }
  return words;
}

Result<bool> Says(const PodParts& parts, std::string_view key, const char* word) {
  BERTH_TRY(const std::set<std::string> words, WordsOf(parts, key));
  return words.contains(word);
}

Status WantsMemory(const ContainerSpec& container) {
  if (container.ask.gpu_memory_percent > 0) {
    return Invalid("container " + container.name + ": want " + std::string(kHamiMemoryResource) +
                   " with vgpu-mode mig, got " + std::string(kHamiMemoryPercentResource) +
                   ", which depends on the size of the GPU");
  }
  if (container.ask.gpu_memory_mib_each > 0) return {};
  return Invalid("container " + container.name + ": want " + std::string(kHamiMemoryResource) +
                 " beside nvidia.com/gpu with vgpu-mode mig, got none");
}

// Of a pod that is of no mode, or of another one than mig.
Status RefuseOthers(const PodParts& parts, bool gives_devices) {
  bool wants_gpus = false;
  for (const ContainerSpec& container : parts.containers) {
    wants_gpus =
        wants_gpus || container.ask.gpus > 0 || container.ask.share_agent == kHamiWords.agent;
    if (std::ranges::find(kHamiResources, container.ask.part_resource) == kHamiResources.end()) {
      continue;
    }
    return Invalid("container " + container.name + ": " + std::string(container.ask.part_resource) +
                   " asks for a GPU share that only HAMi's scheduler assigns; want the annotation "
                   "nvidia.com/vgpu-mode: mig, or berth.dev/gpu-milli or berth.dev/gpu-memory-mib "
                   "instead of nvidia.com/gpu");
  }
  if (!wants_gpus) return {};
  const std::string* const mode = parts.Annotation(kModeKey);
  const bool any_mode = mode == nullptr || mode->empty() || (gives_devices && *mode == "hami-core");
  if (!any_mode) {
    const std::string_view want = gives_devices ? "mig or hami-core" : "mig";
    return wire::WrongAnnotation(
        kModeKey, wire::WantedText(want, *mode) + ", which only HAMi's scheduler assigns");
  }
  if (!parts.annotations.contains(kProfileKey)) return {};
  return wire::WrongAnnotation(
      kProfileKey, "not understood; want a resource with the profile, nvidia.com/mig-PROFILE");
}

Status RefuseForMig(const PodParts& parts, std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (!parts.annotations.contains(key)) continue;
    return wire::WrongAnnotation(
        key, "not understood for MIG devices; leave it to a node selector or affinity");
  }
  return {};
}

}  // namespace

Status FindHamiShares(PodParts& parts) {
  const std::string* const mode = parts.Annotation(kModeKey);
  if (mode != nullptr && *mode == "mig") return {};
  return FindVgpuShares(kHamiWords, parts);
}

Result<std::optional<MigWant>> ReadHamiAsk(const PodParts& parts, bool gives_devices) {
  const std::string* const mode = parts.Annotation(kModeKey);
  if (mode == nullptr || *mode != "mig") {
    BERTH_TRY_STATUS(RefuseOthers(parts, gives_devices));
    return std::nullopt;
  }
  std::optional<MigWant> need;
  for (const ContainerSpec& container : parts.containers) {
    if (container.ask.gpus == 0) continue;
    BERTH_TRY_STATUS(WantsMemory(container));
    const std::int64_t memory_mib = container.ask.gpu_memory_mib_each;
    if (need && need->min_memory_mib != memory_mib) {
      return Invalid("container " + container.name + ": want as much " +
                     std::string(kHamiMemoryResource) + " as in the containers before it (" +
                     std::to_string(need->min_memory_mib) + "), got " + std::to_string(memory_mib));
    }
    need = MigWant{.profile = {}, .min_memory_mib = memory_mib};
  }
  if (need) BERTH_TRY_STATUS(RefuseForMig(parts, kMigChoiceKeys));
  return need;
}

Status RefuseMigUuids(const PodParts& parts) { return RefuseForMig(parts, kUuidKeys); }

Status ReadHamiChoices(const PodParts& parts, RequestShape& shape) {
  constexpr std::array kSpreads = {Spread::kCard, Spread::kNode};
  if (!shape.wants_gpu()) return {};
  for (std::size_t i = 0; i < kSpreads.size() && shape.spread == Spread::kNone; ++i) {
    BERTH_TRY(const bool spreads, Says(parts, kHamiPolicyKeys[i], "spread"));
    if (spreads) wire::SpreadByController(parts, kSpreads[i], shape);
  }
  std::vector<ModelRule> rules;
  for (const std::string_view key : {kUseTypeKey, kNoUseTypeKey}) {
    BERTH_TRY(const std::set<std::string> words, WordsOf(parts, key));
    for (const std::string& part : words) rules.push_back({key == kNoUseTypeKey, part});
  }
  shape.model_rules = ModelRules(std::move(rules));
  if (shape.gpu_count() > 0) {
    BERTH_TRY_STATUS(ReadVgpuUuids(parts, kUseUuidKey, kNoUseUuidKey, shape));
  }
  if (shape.links.numa != NumaWish::kAmongEquals) return {};
  BERTH_TRY(const bool binds, Says(parts, kNumaBindKey, "true"));
  if (binds) shape.links.numa = NumaWish::kRequired;
  return {};
}

}  // namespace berth::dialects
