// SPDX-License-Identifier: Apache-2.0
//
// GpuPower: what GPUs, and the CPUs beside them, draw when nobody uses them and when somebody does.
//
// The figures are for estimates that compare placements, and no measurements of a cluster: a GPU
// counts as busy as soon as a pod has any of it. A model is named as its node publishes it
// (gpu_model.h).
//
// Thread-safe: constant data.
#pragma once

#include <span>
#include <string_view>

namespace berth {

struct CpuPower {
  std::string_view name;
  int idle_watts;  // of one CPU (a socket) without a core given to a pod
  int busy_watts;  // of one with any core given
  int cores;       // physical; two vCPUs each
  std::string_view source;
};

struct GpuPower {
  std::string_view name;
  int idle_watts;       // of one GPU
  int busy_watts;       // > idle_watts
  const CpuPower* cpu;  // of the machines with such GPUs; nullptr: not known
  std::string_view source;
};

// All rows, sorted by name.
std::span<const GpuPower> GpuPowerCatalogue();

// The row of that name (exact match), or nullptr.
const GpuPower* FindGpuPower(std::string_view name);

}  // namespace berth
