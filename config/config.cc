// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "config/words.h"
#include "scoring/registry.h"

namespace berth {
namespace {

// Shaped like the openb trace of 2023 (Weng et al., USENIX ATC'23): 13 % of the tasks ask for no
// GPU, 38 % for a share (most often 0.81), 48 % for one GPU, 1 % for more.
std::vector<MixEntry> TypicalMix() {
  return {
      {.cpu_milli = 8000, .weight = 13.3},
      {.cpu_milli = 6000, .gpu_milli = 250, .weight = 8.0},
      {.cpu_milli = 8000, .gpu_milli = 500, .weight = 16.5},
      {.cpu_milli = 12000, .gpu_milli = 810, .weight = 13.2},
      {.cpu_milli = 12000, .gpus = 1, .weight = 48.0},
      {.cpu_milli = 24000, .gpus = 2, .weight = 0.2},
      {.cpu_milli = 48000, .gpus = 4, .weight = 0.2},
      {.cpu_milli = 88000, .gpus = 8, .weight = 0.6},
  };
}

RequestMix ScaledMix(const std::vector<MixEntry>& entries) {
  double sum = 0;
  for (const MixEntry& entry : entries) sum += entry.weight;
  if (std::abs(sum - 1) < 1e-9) sum = 1;  // scaled already: keep every bit
  RequestMix mix;
  for (const MixEntry& entry : entries) {
    RequestShape shape{entry.cpu_milli, 0, NoGpu{}, entry.models};
    if (entry.gpus > 0) shape.gpus = WholeGpus{entry.gpus};
    if (entry.gpu_milli > 0) shape.gpus = GpuShare{entry.gpu_milli, 0};
    mix.push_back({std::move(shape), entry.weight / sum});
  }
  return mix;
}

}  // namespace

Config DefaultConfig() {
  Config config;
  config.resources = {
      {"nvidia.com/gpu", ResourceMeaning::kWholeGpus, "gpu"},
      {"nvidia.com/gpu.shared", ResourceMeaning::kWholeGpus, "gpu"},  // as time slicing renames it
  };
  for (ResourceRule& own : BerthsOwnResources()) config.resources.push_back(std::move(own));
  // Of AKS' node problem detector (learn.microsoft.com/azure/aks/node-problem-detector) and EKS'
  // node monitoring agent (docs.aws.amazon.com/eks/latest/userguide/node-health-nma.html). Missing
  // GPUs are not allocatable, and count so.
  config.gpu_nodes.conditions = {"XIDErrors", "NVLinkStatusInactive", "UnhealthyNvidiaDevicePlugin",
                                 "AcceleratedHardwareReady=False"};
  config.topology_levels = DefaultTopologyLevels();
  config.gangs.conventions.assign(kGangConventionWords.begin(), kGangConventionWords.end());
  return config;
}

std::vector<ResourceRule> BerthsOwnResources() {
  return {{"berth.dev/gpu-milli", ResourceMeaning::kShareCompute, "milli"},
          {"berth.dev/gpu-memory-mib", ResourceMeaning::kShareMemory, "MiB"}};
}

Result<ConditionRule> ParseConditionRule(std::string_view text) {
  constexpr std::array<std::string_view, 3> kStatuses = {"True", "False", "Unknown"};
  const std::size_t equals = text.find('=');
  const std::string_view type = text.substr(0, equals);
  const std::string_view status =
      equals == std::string_view::npos ? kStatuses.front() : text.substr(equals + 1);
  if (type.empty() || std::ranges::find(kStatuses, status) == kStatuses.end()) {
    return Invalid("want TYPE, or TYPE=STATUS with a status of True, False or Unknown, got \"" +
                   std::string(text) + "\"");
  }
  return ConditionRule{std::string(type), std::string(status)};
}

const ProfileSpec* FindProfile(const Config& config, std::string_view name) {
  const auto own = std::ranges::find(config.profiles, name, &ProfileSpec::name);
  return own != config.profiles.end() ? &*own : FindBuiltinProfile(name);
}

std::vector<ProfileSpec> ClassProfiles(const Config& config) {
  std::vector<ProfileSpec> profiles;
  for (const WorkloadClass& workload : config.workload_classes) {
    const ProfileSpec* const profile = FindProfile(config, workload.profile);
    if (profile == nullptr || profile->name == config.profile) continue;
    if (std::ranges::find(profiles, profile->name, &ProfileSpec::name) == profiles.end()) {
      profiles.push_back(*profile);
    }
  }
  return profiles;
}

const ProfileSpec& ChosenProfile(const Config& config) {
  return *FindProfile(config, config.profile);
}

RequestMix MixOf(const Config& config) {
  return ScaledMix(config.request_mix.empty() ? TypicalMix() : config.request_mix);
}

std::int64_t UnitFactor(const ResourceRule& rule) {
  switch (rule.meaning) {
    case ResourceMeaning::kWholeGpus:
    case ResourceMeaning::kIgnored:
      return rule.unit == "gpu" ? 1 : 0;
    case ResourceMeaning::kShareCompute:
      return rule.unit == "milli" ? 1 : rule.unit == "percent" ? kMilliPerGpu / 100 : 0;
    case ResourceMeaning::kShareMemory:
      return rule.unit == "bytes" ? 1
             : rule.unit == "MiB" ? 1 << 20
             : rule.unit == "GiB" ? 1 << 30
                                  : 0;
  }
  return 0;
}

}  // namespace berth
