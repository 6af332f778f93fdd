// SPDX-License-Identifier: Apache-2.0
//
// The GPUs of NVIDIA's driver without its library: what the kernel module says in
// /proc/driver/nvidia/gpus. No NVLinks, no MIG.
#pragma once

#include <string>

#include "node/facts/found_machine.h"

namespace berth::node {

// By PCI address, which is nvidia-smi's order. No GPUs where the module is not loaded.
FoundMachine ProbeNvidiaProc(const std::string& proc_root);

}  // namespace berth::node
