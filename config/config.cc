// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"

#include <algorithm>

#include "scoring/registry.h"

namespace berth {

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
