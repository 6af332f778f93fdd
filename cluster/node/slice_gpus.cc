// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/slice_gpus.h"

#include <algorithm>
#include <cstddef>

namespace berth {
namespace {

// Where each of the GPUs is in `uuids`; empty: these are not the same GPUs.
std::vector<int> PlacesIn(const std::vector<std::string>& uuids, const std::vector<GpuSpec>& gpus) {
  if (uuids.size() != gpus.size()) return {};
  std::vector<int> places;
  for (const GpuSpec& gpu : gpus) {
    const auto at = std::ranges::find(uuids, gpu.uuid);
    if (at == uuids.end()) return {};
    places.push_back(static_cast<int>(at - uuids.begin()));
  }
  return places;
}

// What the node says of these GPUs, also as those of a device plugin that is gone.
GpusBeside SaidOf(const NodeSpec& spec) {
  if (!spec.beside.uuids.empty() || !spec.links.known()) return spec.beside;
  if (spec.links.source() <= LinkSource::kCatalogue) return {};
  GpusBeside said{.links = spec.links};
  for (const GpuSpec& gpu : spec.gpus) said.uuids.push_back(gpu.uuid);
  return said;
}

}  // namespace

bool OffersOwnGpus(const NodeSpec& spec) {
  if (spec.places.count > 0) return spec.places.count > spec.missing;
  return std::ranges::count_if(spec.gpus, &GpuSpec::healthy) > spec.missing;
}

NodeSpec WithSliceGpus(NodeSpec spec, const SliceGpus& offered) {
  const GpusBeside said = SaidOf(spec);
  spec.gpu_model = offered.model;
  spec.gpus = offered.gpus;
  spec.gpu_models.clear();
  spec.links = offered.links;
  spec.by_claims = offered.names;
  spec.gpu_resource = offered.names.front().resource;
  spec.places = {};
  spec.missing = 0;
  spec.gpus_are_parts = false;
  spec.share_agent.clear();
  spec.agent_serves_all = false;
  spec.part_agent.clear();
  spec.carries_out = false;
  spec.topology_manager = {};  // it limits what device plugins give
  spec.gpus_to_come = false;
  const std::vector<int> places = PlacesIn(said.uuids, offered.gpus);
  if (places.empty()) return spec;
  spec.links = said.links;
  for (std::size_t i = 0; i < places.size(); ++i) {
    spec.gpus[static_cast<std::size_t>(places[i])] = offered.gpus[i];
  }
  for (GpusByName& name : spec.by_claims) {
    for (int& gpu : name.order) gpu = places[static_cast<std::size_t>(gpu)];
  }
  return spec;
}

}  // namespace berth
