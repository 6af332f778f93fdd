// SPDX-License-Identifier: Apache-2.0
//
// CpuPrice: the price of CPU for a pod without GPU on a node with GPUs, if CPU is scarce.
//
// If the pods that fill the GPUs ask for as much CPU as the nodes have, every remainder of CPU that
// is too small for the next pod leaves a part of a GPU idle elsewhere. So a pod without GPU then
// goes to the node on which it leaves the least CPU:
//
//   asked = CPU that the mix asks for per GPU / CPU of the fleet per GPU
//   price = kCpuPrice * CPU left / 128 cores, in GPUs; nothing where asked <= kPlentyOfCpu, rising
//           in equal steps to all of it where asked >= kScarceCpu
//
// The expected waste still keeps such a pod away from CPU that the node's own idle GPUs will need.
#pragma once

#include <algorithm>

#include "scoring/waste/fleet.h"
#include "scoring/waste/request_mix.h"

namespace berth {

constexpr double kCpuPrice = 0.2;  // GPUs
constexpr double kPlentyOfCpu = 0.95, kScarceCpu = 1;

// The price of an empty largest node over that of a full one, in GPUs: 0..kCpuPrice; 0 if mix or
// fleet has no GPU.
inline double CpuPriceOf(const RequestMix& mix, const Fleet& fleet) {
  double asked_cpu = 0, asked_gpu = 0, cpu = 0, gpu = 0;
  for (const RequestClass& entry : mix) {
    asked_cpu += entry.weight * static_cast<double>(entry.shape.cpu_milli);
    asked_gpu += entry.weight * entry.shape.gpu_count() * entry.shape.milli_per_gpu();
  }
  for (const NodeKind& kind : fleet) {
    cpu += static_cast<double>(kind.state.cpu_milli) * kind.nodes;
    gpu += static_cast<double>(kind.state.total) * kind.nodes;
  }
  if (asked_gpu <= 0 || cpu <= 0) return 0;
  const double asked = asked_cpu / asked_gpu / (cpu / gpu);
  return kCpuPrice * std::clamp((asked - kPlentyOfCpu) / (kScarceCpu - kPlentyOfCpu), 0.0, 1.0);
}

}  // namespace berth
