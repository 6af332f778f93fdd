// SPDX-License-Identifier: Apache-2.0
//
// The JSON of a Device (scheduling.koordinator.sh/v1alpha1) of Koordinator: the GPUs of the node of
// the same name, and where they are plugged in.
//
//   {"metadata": {"name": "n1"}, "spec": {"devices": [
//     {"type": "gpu", "id": "GPU-..", "minor": 0, "health": true,
//      "resources": {"koordinator.sh/gpu-memory": "81920Mi", ...},
//      "topology": {"socketID": 0, "nodeID": 0, "pcieID": "pci0000:16"}}, ...]}}
//
// It does not say how many NVLinks two GPUs have (the annotation gpu-partitions names sets that
// Koordinator may give, and the bandwidth of their ring): those are taken from the product
// catalogue, where it has the machine. A machine that has NVLinks and is not in it counts as one
// without. (koordinator at 28f6cd8, apis/scheduling/v1alpha1/device_types.go.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/padded_text.h"
#include "base/result.h"
#include "server/wire/json/strict_json.h"
#include "topology/links/link_matrix.h"

namespace berth::dialects {

struct KoordinatorGpu {
  std::string uuid;  // empty = not said
  int numa = -1;     // -1 = not known
  std::string pcie;  // empty = not known
  bool healthy = false;
  std::int64_t memory_mib = 0;  // 0 = not known
  friend bool operator==(const KoordinatorGpu&, const KoordinatorGpu&) = default;
};

struct KoordinatorDevice {
  std::string namespace_name;        // always empty
  std::string name;                  // of the node
  std::vector<KoordinatorGpu> gpus;  // by minor, which is taken as the index
  friend bool operator==(const KoordinatorDevice&, const KoordinatorDevice&) = default;
};

// The amount of one resource, 0 where it is not there. Kubernetes reads a quantity from a text or a
// number. Error: kInvalidArgument for what is none, or below 0, with the path.
Result<std::int64_t> KoordinatorAmount(const wire::Json& resources, const std::string& path,
                                       std::string_view resource);

// Error: kInvalidArgument with the path of the field, also where the minors are not 0, 1, 2, ...
Result<KoordinatorDevice> DecodeKoordinatorDevice(const PaddedText& text);

// The links of these GPUs: PXB under one PCIe switch, NODE in one NUMA node, SYS else; NVLinks of
// the catalogue. nullopt where there are none, or of one it is not known where it is.
std::optional<LinkMatrix> LinksOfKoordinator(const KoordinatorDevice& device,
                                             std::string_view product);

}  // namespace berth::dialects
