// SPDX-License-Identifier: Apache-2.0
#include "node/pods/plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "node/kubelet/plugin_file.h"

namespace berth::node {
namespace {

using PlanJson = nlohmann::json;

const PlanJson* Find(const PlanJson& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? nullptr : &*found;
}

std::string TextOf(const PlanJson& object, const char* key) {
  const PlanJson* const found = Find(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

int NumberOf(const PlanJson& object, const char* key, int otherwise) {
  const PlanJson* const found = Find(object, key);
  if (found == nullptr || !found->is_number_integer()) return otherwise;
  const auto number = found->get<std::int64_t>();
  return number < 0 || number > 1'000'000 ? otherwise : static_cast<int>(number);
}

std::vector<PlannedGpu> ParseGpus(const PlanJson* list) {
  std::vector<PlannedGpu> gpus;
  if (list == nullptr || !list->is_array()) return gpus;
  for (const PlanJson& gpu : *list) {
    if (gpus.size() >= kMostPlannedDevices) break;
    gpus.push_back({NumberOf(gpu, "index", -1), TextOf(gpu, "uuid"), NumberOf(gpu, "milli", 1000)});
  }
  return gpus;
}

ContainerPlan ParseContainer(const PlanJson& content) {
  ContainerPlan plan;
  plan.gpus = ParseGpus(Find(content, "gpus"));
  plan.places = ParseGpus(Find(content, "places"));
  if (const PlanJson* const mig = Find(content, "mig"); mig != nullptr && mig->is_array()) {
    for (const PlanJson& device : *mig) {
      if (plan.mig.size() >= kMostPlannedDevices) break;
      plan.mig.push_back(
          {NumberOf(device, "gpu", -1), TextOf(device, "profile"), NumberOf(device, "start", -1)});
    }
  }
  return plan;
}

// Takes devices out of those that are available, each once.
class Takes {
 public:
  explicit Takes(const std::vector<std::string>& available) {
    for (const std::string& id : available) by_device_.emplace(WithoutReplica(id), id);
  }

  bool Take(std::string_view device) {
    const auto found = device.empty() ? by_device_.end() : by_device_.find(device);
    if (found == by_device_.end()) return false;
    taken_.push_back(found->second);
    by_device_.erase(found);
    return true;
  }

  std::vector<std::string> taken() && { return std::move(taken_); }

 private:
  std::multimap<std::string_view, std::string> by_device_;
  std::vector<std::string> taken_;
};

}  // namespace

ContainerPlan PodPlan::Whole() const {
  ContainerPlan whole;
  for (const auto& [name, plan] : containers) {
    for (const PlannedGpu& gpu : plan.gpus) {
      const auto same = [&gpu](const PlannedGpu& other) {
        return other.index == gpu.index && other.uuid == gpu.uuid;
      };
      if (std::ranges::none_of(whole.gpus, same)) whole.gpus.push_back(gpu);
    }
    whole.mig.insert(whole.mig.end(), plan.mig.begin(), plan.mig.end());
    whole.places.insert(whole.places.end(), plan.places.begin(), plan.places.end());
  }
  return whole;
}

Result<PodPlan> ParsePlan(std::string_view annotation, std::string_view node) {
  if (annotation.size() > kMostPlanBytes) return Invalid("berth.dev/devices: more than 64 KiB");
  const PlanJson json = PlanJson::parse(annotation, nullptr, false);
  if (json.is_discarded() || NumberOf(json, "version", 0) != 1) {
    return Invalid("berth.dev/devices: want JSON of version 1");
  }
  if (const std::string planned_for = TextOf(json, "node"); planned_for != node) {
    return Invalid("berth.dev/devices.node: want " + std::string(node) + ", got \"" +
                   planned_for.substr(0, 253) + "\"");
  }
  const PlanJson* const containers = Find(json, "containers");
  if (containers == nullptr || !containers->is_object()) {
    return Invalid("berth.dev/devices.containers: want an object");
  }
  PodPlan plan;
  for (const auto& [name, content] : containers->items()) {
    plan.containers.emplace(name, ParseContainer(content));
  }
  return plan;
}

std::vector<std::string> DevicesOf(const ContainerPlan& plan,
                                   const std::vector<std::string>& available,
                                   const NodeFacts& facts) {
  Takes takes(available);
  for (const auto* const gpus : {&plan.gpus, &plan.places}) {
    for (const PlannedGpu& gpu : *gpus) {
      if (takes.Take(gpu.uuid)) continue;
      const auto fact = std::ranges::find(facts.gpus, gpu.index, &GpuFact::index);
      if (fact != facts.gpus.end()) takes.Take(fact->id);
    }
  }
  for (const PlannedMig& planned : plan.mig) {
    for (const MigFact& fact : facts.mig) {
      const bool is_it = fact.profile == planned.profile &&
                         (planned.gpu < 0 || planned.gpu == fact.gpu) &&
                         (planned.start < 0 || planned.start == fact.start);
      if (is_it && takes.Take(fact.id)) break;
    }
  }
  return std::move(takes).taken();
}

}  // namespace berth::node
