// SPDX-License-Identifier: Apache-2.0
#include "config/reload.h"

#include <yaml-cpp/yaml.h>
#include <utility>

#include "base/check.h"

namespace berth {
namespace {

// Appends the paths in which two mappings with the same keys differ; a list is one setting.
void AppendDifferences(const YAML::Node& a, const YAML::Node& b, const std::string& place,
                       std::vector<std::string>& paths) {
  for (const auto& field : a) {
    const std::string path = place + field.first.Scalar();
    const YAML::Node other = b[field.first.Scalar()];
    if (field.second.IsMap() && other.IsMap()) {
      AppendDifferences(field.second, other, path + ".", paths);
    } else if (YAML::Dump(field.second) != YAML::Dump(other)) {
      paths.push_back(path);
    }
  }
}

}  // namespace

Config Reloaded(const Config& now, const Config& wanted) {
  Config next = now;
  next.profile = wanted.profile;
  next.profiles = wanted.profiles;
  next.reservation_seconds = wanted.reservation_seconds;
  next.nodes_to_score = wanted.nodes_to_score;
  next.gangs = wanted.gangs;
  next.gangs.controllers = now.gangs.controllers;  // pods are read with them
  next.earmarks = wanted.earmarks;
  next.make_room = wanted.make_room;
  next.gpu_nodes.guard = wanted.gpu_nodes.guard;  // the conditions are read with the nodes
  // Classes name traits, and those of nodes are found as the nodes are read.
  if (wanted.traits == now.traits) next.workload_classes = wanted.workload_classes;
  next.log_level = wanted.log_level;
  return next;
}

std::vector<std::string> NeedsRestart(const Config& now, const Config& wanted) {
  // The printed form has every field, so that no list of them has to be kept here.
  std::vector<std::string> paths;
  AppendDifferences(YAML::Load(PrintConfig(Reloaded(now, wanted))), YAML::Load(PrintConfig(wanted)),
                    "", paths);
  return paths;
}

bool SamePolicy(const Config& a, const Config& b) {
  return ChosenProfile(a) == ChosenProfile(b) && ClassProfiles(a) == ClassProfiles(b);
}

RequestMix TypicalMix() {
  RequestMix mix;
  const auto add = [&mix](std::int64_t cpu_milli, const GpuAsk& gpus, double weight) {
    RequestClass& entry = mix.emplace_back();
    entry.shape.cpu_milli = cpu_milli;
    entry.shape.gpus = gpus;
    entry.weight = weight;
  };
  add(8000, GpuAsk(), 13.3);
  add(6000, GpuShare{250, 0}, 8.0);
  add(8000, GpuShare{500, 0}, 16.5);
  add(12000, GpuShare{810, 0}, 13.2);
  add(12000, WholeGpus{1}, 48.0);
  add(24000, WholeGpus{2}, 0.2);
  add(48000, WholeGpus{4}, 0.2);
  add(88000, WholeGpus{8}, 0.6);
  double sum = 0;
  for (const RequestClass& entry : mix) sum += entry.weight;
  for (RequestClass& entry : mix) entry.weight /= sum;
  return mix;
}

std::shared_ptr<Engine> EngineFor(const Config& config, std::shared_ptr<const LearnedMix> mix,
                                  const Snapshot& snapshot, Background background) {
  Engine::Learning learning{ChosenProfile(config), {}, std::move(mix)};
  learning.background = std::move(background);
  learning.others = ClassProfiles(config);
  if (learning.mix == nullptr) learning.fixed = std::make_shared<const RequestMix>(TypicalMix());
  auto engine = Engine::Create(std::move(learning), snapshot);
  BERTH_CHECK(engine.has_value());  // the configuration was validated
  return *std::move(engine);
}

}  // namespace berth
