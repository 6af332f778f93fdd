// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/inventory.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cluster/values/pod_request.h"

namespace berth {
namespace {

struct Source {
  std::string_view name;
  std::int64_t gpus;
};

std::string Contradiction(const GpuEvidence& said, const Source& source) {
  return std::to_string(said.devices) + " " + said.resource + " are offered, but " +
         std::string(source.name) + " says " + std::to_string(source.gpus) +
         (source.gpus == 1 ? " GPU" : " GPUs") +
         "; run berth-node there, or list the GPUs in berth.dev/gpu-uuids";
}

GpuInventory OfParts(const GpuEvidence& said, std::int64_t by_replicas) {
  if (by_replicas > 0) return {false, by_replicas};
  if (!said.shared) return {true, said.devices};
  return {false, said.labelled < said.devices ? said.labelled : 0};
}

// sources: by trust.
GpuInventory OfShared(const GpuEvidence& said, std::array<Source, 4> sources) {
  GpuInventory found{.whole = false};
  const Source* first = nullptr;
  for (const Source& source : sources) {
    if (source.gpus == 0) continue;
    const bool offers_fewer = first != nullptr && &source == &sources.back();
    if (first != nullptr && (offers_fewer ? source.gpus < found.gpus : source.gpus != found.gpus)) {
      found.contradiction = Contradiction(said, source.gpus < found.gpus ? source : *first);
    }
    found.gpus = first == nullptr ? source.gpus : std::min(found.gpus, source.gpus);
    if (first == nullptr) first = &source;
  }
  if (first == nullptr) found.gpus = said.labelled;
  if (found.gpus >= said.devices) found.gpus = 0;
  return found;
}

}  // namespace

GpuInventory TakeInventory(const GpuEvidence& said) {
  const std::int64_t devices = said.devices, replicas = said.replicas;
  const std::int64_t by_replicas = replicas > 1 ? (devices + replicas - 1) / replicas : 0;
  if (said.parts) return OfParts(said, by_replicas);
  const std::array<Source, 4> sources = {{{"berth.dev/gpu-uuids", said.uuids},
                                          {"the register of its agent", said.registered},
                                          {"the label of replicas", by_replicas},
                                          {"the machine type", said.machine}}};
  if (said.shared || by_replicas > 0) return OfShared(said, sources);
  const Source *least = nullptr, *most = nullptr;
  for (const Source& source : sources) {
    if (source.gpus == 0) continue;
    // One has fallen off the bus: of replicas there are twice as many, or more.
    const bool whole = &source != &sources.back() && devices < 2 * source.gpus;
    const Source*& side = whole || source.gpus >= devices ? most : least;
    if (side == nullptr || source.gpus < side->gpus) side = &source;
  }
  if (least != nullptr) {
    GpuInventory found{.whole = false, .gpus = least->gpus};
    if (most != nullptr || devices % least->gpus != 0 || devices < 2 * least->gpus) {
      found.contradiction = Contradiction(said, *least);
    }
    return found;
  }
  const bool is_settled = most != nullptr && (most->gpus <= devices || most != &sources.back());
  if (!is_settled && said.labelled > 0 && devices >= 2 * said.labelled) {
    GpuInventory found{.whole = false, .gpus = said.labelled};
    if (said.of_one_product || most != nullptr) {
      found.contradiction = Contradiction(said, {"the label of their number", said.labelled});
    }
    return found;
  }
  if (devices <= kMaxGpusPerNode || most != nullptr || said.labelled > 0) return {true, devices};
  return {false, 0,
          std::to_string(devices) + " " + said.resource +
              " are offered, and nobody says of how "
              "many GPUs; run berth-node there, or label it with their number"};
}

}  // namespace berth
