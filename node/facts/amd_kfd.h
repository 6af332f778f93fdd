// SPDX-License-Identifier: Apache-2.0
//
// The GPUs of AMD's driver, by the topology that its kernel module has in sysfs
// (/sys/class/kfd/kfd/topology/nodes): PCI addresses, which are the names that AMD's device plugin
// gives them, and xGMI links. GPUs in compute partitions (CPX, DPX) are not described: their parts
// are named otherwise.
#pragma once

#include <string>

#include "node/facts/found_machine.h"

namespace berth::node {

// By the number of the node, which is the order of rocm-smi. No GPUs where the module is not
// loaded. `links` has xGMI alone.
FoundMachine ProbeAmdKfd(const std::string& sys_root);

}  // namespace berth::node
