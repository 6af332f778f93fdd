// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/dns_name.h"
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

Status ValidateProfiles(const Config& config) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < config.profiles.size(); ++i) {
    const ProfileSpec& spec = config.profiles[i];
    const std::string place = "profiles[" + std::to_string(i) + "]";
    if (spec.name.empty()) return Invalid(place + ".name: want a name, got \"\"");
    if (!names.insert(spec.name).second) {
      return Invalid(place + ".name: \"" + spec.name + "\" is there twice");
    }
    if (auto built = BuildProfile(spec, MixOf(config)); !built) {
      return tl::unexpected(std::move(built).error().Within(place));
    }
  }
  if (names.contains(config.profile) || FindBuiltinProfile(config.profile) != nullptr) return {};
  for (const ProfileSpec& spec : BuiltinProfiles()) names.insert(spec.name);
  std::string known;
  for (const std::string& name : names) known += " " + name;
  return Invalid("profile: want one of" + known + ", got \"" + config.profile + "\"");
}

Status ValidateResources(const Config& config) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < config.resources.size(); ++i) {
    const ResourceRule& rule = config.resources[i];
    const std::string place = "resources[" + std::to_string(i) + "]";
    if (rule.name.empty()) return Invalid(place + ".name: want a resource name, got \"\"");
    if (!names.insert(rule.name).second) {
      return Invalid(place + ".name: \"" + rule.name + "\" is there twice");
    }
    if (UnitFactor(rule) == 0) {
      return Invalid(place +
                     ".unit: want a unit of the meaning (whole-gpus: gpu; share-compute: milli, "
                     "percent; share-memory: bytes, MiB, GiB), got \"" +
                     rule.unit + "\"");
    }
  }
  return {};
}

Status ValidateLeaderElection(const LeaderElectionConfig& config) {
  if (!config.namespace_name.empty() && !IsDnsLabel(config.namespace_name)) {
    return Invalid("leaderElection.namespace: want a DNS-1123 label or \"\", got \"" +
                   config.namespace_name + "\"");
  }
  if (!IsDnsSubdomain(config.name)) {
    return Invalid("leaderElection.name: want a DNS-1123 name, got \"" + config.name + "\"");
  }
  return {};
}

Status ValidateGangs(const GangsConfig& config) {
  for (std::size_t i = 0; i < config.conventions.size(); ++i) {
    const std::string& name = config.conventions[i];
    if (std::ranges::find(kGangConventionWords, name) != kGangConventionWords.end()) continue;
    std::string known;
    for (const std::string_view word : kGangConventionWords) known += " " + std::string(word);
    return Invalid("gangs.conventions[" + std::to_string(i) + "]: want one of" + known +
                   ", got \"" + name + "\"");
  }
  return {};
}

}  // namespace

Config DefaultConfig() {
  Config config;
  config.resources = {
      {"nvidia.com/gpu", ResourceMeaning::kWholeGpus, "gpu"},
      {"nvidia.com/gpu.shared", ResourceMeaning::kWholeGpus, "gpu"},  // as time slicing renames it
      {"berth.dev/gpu-milli", ResourceMeaning::kShareCompute, "milli"},
      {"berth.dev/gpu-memory-mib", ResourceMeaning::kShareMemory, "MiB"},
  };
  config.topology_levels = DefaultTopologyLevels();
  config.gangs.conventions.assign(kGangConventionWords.begin(), kGangConventionWords.end());
  return config;
}

Status Validate(const Config& config) {
  for (std::size_t i = 0; i < config.request_mix.size(); ++i) {
    if (config.request_mix[i].gpus > 0 && config.request_mix[i].gpu_milli > 0) {
      return Invalid("requestMix[" + std::to_string(i) + "]: want gpus or gpuMilli, got both");
    }
  }
  BERTH_TRY_STATUS(ValidateProfiles(config));
  BERTH_TRY_STATUS(ValidateResources(config));
  BERTH_TRY_STATUS(ValidateLeaderElection(config.leader_election));
  BERTH_TRY_STATUS(ValidateGangs(config.gangs));
  if (Status levels = Validate(config.topology_levels); !levels) {
    return tl::unexpected(std::move(levels).error().Within("topology.levels"));
  }
  const TlsConfig& tls = config.server.tls;
  if (tls.certificate_file.empty() != tls.key_file.empty()) {
    return Invalid("server.tls: want certificateFile and keyFile, got only one of them");
  }
  if (tls.certificate_file.empty() && !tls.client_ca_file.empty()) {
    return Invalid("server.tls.clientCaFile: want a certificateFile beside it, got none");
  }
  return {};
}

const ProfileSpec& ChosenProfile(const Config& config) {
  const auto own = std::ranges::find(config.profiles, config.profile, &ProfileSpec::name);
  return own != config.profiles.end() ? *own : *FindBuiltinProfile(config.profile);
}

RequestMix MixOf(const Config& config) {
  return ScaledMix(config.request_mix.empty() ? TypicalMix() : config.request_mix);
}

std::int64_t UnitFactor(const ResourceRule& rule) {
  switch (rule.meaning) {
    case ResourceMeaning::kWholeGpus:
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
