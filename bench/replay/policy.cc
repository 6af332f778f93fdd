// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/policy.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "bench/replay/model_settings.h"
#include "scoring/registry.h"
#include "server/wire/pod/pod_needs.h"

namespace berth::replay {
namespace {

struct SchedulerName {
  std::string_view name;
  KubeStrategy strategy;
};
constexpr std::array<SchedulerName, 2> kSchedulers = {{
    {"kube-scheduler", KubeStrategy::kLeastAllocated},
    {"most-allocated", KubeStrategy::kMostAllocated},
}};

// What may stand behind the name of a policy, and what it changes.
struct Addition {
  std::string_view name;
  void (*apply)(ReplayPolicy& policy);
};
constexpr std::array<Addition, 7> kAdditions = {{
    {"+earmarks", [](ReplayPolicy& policy) { policy.earmarks.emplace(); }},
    {"+in-turn", [](ReplayPolicy& policy) { policy.in_turn = true; }},
    {"+learned", [](ReplayPolicy& policy) { policy.learns_run_times = true; }},
    {"+words",
     [](ReplayPolicy& policy) {
       policy.words = {1, false};
     }},
    {"+words/10",
     [](ReplayPolicy& policy) {
       policy.words = {0.1, false};
     }},
    {"+words*10",
     [](ReplayPolicy& policy) {
       policy.words = {10, false};
     }},
    {"+deadlines",
     [](ReplayPolicy& policy) {
       policy.words = {1, true};
     }},
}};

const SchedulerName* FindScheduler(std::string_view name) {
  const auto* const found = std::ranges::find(kSchedulers, name, &SchedulerName::name);
  return found == kSchedulers.end() ? nullptr : found;
}

}  // namespace

WishesByClass WishesOf(const Config& config) {
  WishesByClass wishes;
  for (const WorkloadClass& workload : config.workload_classes) {
    wishes.emplace(workload.name, wire::WishesOf(workload));
  }
  return wishes;
}

Result<ProfileSpec> ProfileNamed(const std::string& name) {
  if (const ProfileSpec* spec = FindBuiltinProfile(name)) return *spec;
  return Invalid("policy: want one of " + Join(BuiltinProfiles(), " ", &ProfileSpec::name) +
                 ", got \"" + name + "\"");
}

Result<ReplayPolicy> PolicyNamed(const std::string& name) {
  for (const Addition& addition : kAdditions) {
    if (!name.ends_with(addition.name)) continue;
    BERTH_TRY(ReplayPolicy policy, PolicyNamed(name.substr(0, name.size() - addition.name.size())));
    policy.name = name;
    addition.apply(policy);
    return policy;
  }
  if (const SchedulerName* scheduler = FindScheduler(name)) {
    ReplayPolicy policy{name, {name, {}, DeviceRule::kTightest, TieRule::kEqual}};
    policy.scheduler = scheduler->strategy;
    return policy;
  }
  if (const ProfileSpec* spec = FindBuiltinProfile(name)) return ReplayPolicy{name, *spec};
  return Invalid("policy: want one of " + Join(BuiltinProfiles(), " ", &ProfileSpec::name) + " " +
                 Join(kSchedulers, " ", &SchedulerName::name) + ", got \"" + name +
                 "\" (behind a name: " + Join(kAdditions, " ", &Addition::name) + ")");
}

Result<ReplayPolicy> PolicyOfFile(const std::string& path) {
  BERTH_TRY(std::string text, ReadFile(path));
  BERTH_TRY(const ReplayConfig read, LoadReplayConfig(text, path));
  const Config& config = read.config;
  ReplayPolicy policy{std::filesystem::path(path).filename().string(),
                      ChosenProfile(config),
                      read.model.waste,
                      read.model.learning,
                      std::move(text),
                      WishesOf(config),
                      ClassProfiles(config)};
  if (!PolicyNamed(policy.name)) return policy;
  return Invalid(path + ": want a name that is no built-in profile's");
}

Result<std::vector<ReplayPolicy>> Policies(const std::vector<std::string>& names,
                                           const std::vector<std::string>& files) {
  std::vector<ReplayPolicy> policies;
  for (const std::string& name : names) {
    BERTH_TRY(ReplayPolicy policy, PolicyNamed(name));
    policies.push_back(std::move(policy));
  }
  for (const std::string& file : files) {
    BERTH_TRY(ReplayPolicy policy, PolicyOfFile(file));
    policies.push_back(std::move(policy));
  }
  if (policies.empty()) return Invalid("policies: want at least one, or a configuration, got none");
  for (auto policy = policies.begin(); policy != policies.end(); ++policy) {
    if (std::ranges::count(policies, policy->name, &ReplayPolicy::name) == 1) continue;
    return Invalid("policies: \"" + policy->name + "\" is there twice");
  }
  return policies;
}

nlohmann::ordered_json ConfigurationsJson(const std::vector<ReplayPolicy>& policies) {
  nlohmann::ordered_json texts = nlohmann::ordered_json::object();
  for (const ReplayPolicy& policy : policies) {
    if (!policy.configuration.empty()) texts[policy.name] = policy.configuration;
  }
  return texts;
}

}  // namespace berth::replay
