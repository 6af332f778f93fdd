// SPDX-License-Identifier: Apache-2.0
//
// The probe: looks at the machine once and says what Berth wants to know of it.
//
//   NVIDIA   NVML; without it /proc/driver/nvidia, which knows no NVLinks and no MIG
//   AMD      sysfs of its kernel module
//   both     NUMA nodes, CPUs, PCIe bridges and NICs from sysfs
//
// What is not known for certain is not published: a matrix without the NVLinks that there are would
// be worse than Berth's catalogue of products.
#pragma once

#include <string>

#include "node/facts/node_facts.h"
#include "node/facts/nvml_probe.h"
#include "node/facts/pci_tree.h"

namespace berth::node {

// The GPUs of AMD's driver, by the topology that its kernel module has in sysfs
// (/sys/class/kfd/kfd/topology/nodes): PCI addresses, which are the names that AMD's device plugin
// gives them, and xGMI links. GPUs in compute partitions (CPX, DPX) are not described: their parts
// are named otherwise.

// By the number of the node, which is the order of rocm-smi. No GPUs where the module is not
// loaded. `links` has xGMI alone.
FoundMachine ProbeAmdKfd(const std::string& sys_root);

// The GPUs of NVIDIA's driver without its library: what the kernel module says in
// /proc/driver/nvidia/gpus. No NVLinks, no MIG.

// By PCI address, which is nvidia-smi's order. No GPUs where the module is not loaded.
FoundMachine ProbeNvidiaProc(const std::string& proc_root);

struct ProbeRoots {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string driver = {};  // where the host's or the driver's root is mounted; "" = nowhere
};

// May hang or crash with the driver's library: for a process of its own. No error: what failed is
// in `problems`.
NodeFacts ProbeMachine(const ProbeRoots& roots);

// The second half of it: from what the drivers said.
NodeFacts FactsOf(FoundMachine found, const PciTree& tree);

// `berth-node facts`: the probe as a process of its own.

// Prints the facts as one line on standard output. The process ends with its parent, and after 20 s
// in any case: the driver's library may hang. Returns the status to exit with: 0.
int PrintFacts(const ProbeRoots& roots);

}  // namespace berth::node
