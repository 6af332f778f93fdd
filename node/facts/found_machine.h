// SPDX-License-Identifier: Apache-2.0
//
// FoundMachine: what a driver says of a machine, before it becomes facts (probe.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node/facts/node_facts.h"
#include "topology/links/link_matrix.h"

namespace berth::node {

struct FoundGpu {
  std::string id;    // as the device plugin calls it; "" = the driver does not say
  std::string pci;   // "0000:17:00.0"; "" = not known
  int number = 0;    // of the driver: MIG devices are counted by it
  bool mig = false;  // is given in MIG devices
};

struct FoundMachine {
  std::vector<FoundGpu> gpus;  // in the driver's order
  // A pair of `gpus`, row-major: what the driver says of it. Empty: it says nothing of links.
  std::vector<Link> links;
  std::vector<MigFact> mig;  // .gpu is FoundGpu::number
  bool mig_unknown = false;  // some device does not say enough: `mig` lacks it
  std::string product;       // of the GPUs, as the driver names it: "NVIDIA A100-SXM4-80GB"
  std::vector<std::string> problems;  // for people

  [[nodiscard]] Link& link(std::size_t a, std::size_t b) { return links[a * gpus.size() + b]; }
};

}  // namespace berth::node
