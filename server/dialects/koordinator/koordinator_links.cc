// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/koordinator/koordinator_links.h"

#include <algorithm>
#include <span>
#include <utility>

#include "server/wire/node_links.h"

namespace berth::dialects {

void KoordinatorLinks::Publish(std::vector<ClusterEvent> events, const kube::PublishNodes& next) {
  const MutexLock lock(mutex_);
  for (ClusterEvent& event : events) {
    if (auto* const node = std::get_if<NodeUpserted>(&event)) {
      named_.erase(node->spec.name);
      Relink(node->spec);
    }
    if (auto* const node = std::get_if<NodeRemoved>(&event)) {
      named_.erase(node->name);
      unfit_.Remove(node->name);
    }
  }
  next(std::move(events));
}

void KoordinatorLinks::Put(Object device) {
  const MutexLock lock(mutex_);
  const std::string name = device.name;
  const auto known = devices_.find(name);
  if (known != devices_.end() && known->second == device) return;  // its conditions, mostly
  devices_.insert_or_assign(name, std::move(device));
  RelinkNodes({name});
}

void KoordinatorLinks::Remove(std::string_view, std::string_view name) {
  const MutexLock lock(mutex_);
  const auto known = devices_.find(name);
  if (known == devices_.end()) return;
  devices_.erase(known);
  RelinkNodes({std::string(name)});
}

void KoordinatorLinks::Reset(std::vector<Object> devices) {
  const MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, device] : devices_) names.push_back(name);
  devices_.clear();
  for (Object& device : devices) {
    names.push_back(device.name);
    devices_.insert_or_assign(device.name, std::move(device));
  }
  RelinkNodes(names);
}

void KoordinatorLinks::RelinkNodes(const std::vector<std::string>& names) {
  const auto snapshot = state_.Current();
  std::vector<ClusterEvent> events;
  for (const std::string& name : names) {
    const NodeIndex index = snapshot->names().Find(name);
    if (index == kNoNode) continue;
    NodeSpec spec = snapshot->node(index).spec();
    Relink(spec);
    events.emplace_back(NodeUpserted{std::move(spec)});
  }
  // The specs are those of the state, with links of as many GPUs: they are valid.
  if (!events.empty()) (void)state_.Apply(events);
}

void KoordinatorLinks::NameGpus(NodeSpec& spec) {
  if (named_.erase(spec.name) > 0) {
    for (GpuSpec& gpu : spec.gpus) gpu.uuid.clear();
  }
  const auto found = devices_.find(spec.name);
  if (found == devices_.end() || found->second.gpus.size() != spec.gpus.size()) return;
  if (std::ranges::any_of(spec.gpus, [](const GpuSpec& gpu) { return !gpu.uuid.empty(); })) return;
  for (std::size_t i = 0; i < spec.gpus.size(); ++i) {
    spec.gpus[i].uuid = found->second.gpus[i].uuid;
  }
  named_.insert(spec.name);
}

void KoordinatorLinks::Relink(NodeSpec& spec) {
  NameGpus(spec);
  unfit_.Remove(spec.name);
  if (spec.links.source() > LinkSource::kObject) return;
  const bool ours = spec.links.source() == LinkSource::kObject;
  const auto found = devices_.find(spec.name);
  if ((found == devices_.end() && !ours) || spec.gpus.empty()) return;
  const auto gpus = static_cast<int>(spec.gpus.size());
  std::optional<LinkMatrix> links;
  if (found != devices_.end()) {
    links = LinksOfKoordinator(found->second, spec.gpu_model);
    if (found->second.gpus.size() != spec.gpus.size()) {
      links.reset();
      unfit_.Add(spec.name, "want the node's " + std::to_string(gpus) + " GPUs, got " +
                                std::to_string(found->second.gpus.size()));
    }
  }
  if (links) {
    spec.links = library_.LinksOf(*std::move(links), spec.gpu_model,
                                  {LinkSource::kObject, std::string(kKoordinatorSource)});
    return;
  }
  spec.links = wire::CatalogueLinks(spec.gpu_model, gpus, library_);
}

}  // namespace berth::dialects
