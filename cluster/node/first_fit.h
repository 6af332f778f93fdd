// SPDX-License-Identifier: Apache-2.0
//
// First fit: which GPUs kube-scheduler gives a pod that asks for an extended resource of a
// DeviceClass (KEP-5004). Its allocator cannot be told which: it takes the first that are free, by
// pool, by slice and as their driver published them. So Berth chooses the node by what that will
// be. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/gpu_mask.h"

namespace berth {

// GPUs of a node that pods get by the name of one resource.
struct GpusByName {
  std::string resource;    // "example.com/gpu", "deviceclass.resource.kubernetes.io/CLASS"
  std::vector<int> order;  // indices of them, each once, as kube-scheduler tries them
  friend bool operator==(const GpusByName&, const GpusByName&) = default;
};

// The entry of that resource, of an ask that names none the first; nullptr: there is none.
const GpusByName* FindByName(std::span<const GpusByName> names, std::string_view resource);

// All GPUs of the entry.
GpuMask GpusOf(const GpusByName& name);

// The first `count` of them that are free; 0: there are not so many.
GpuMask FirstFree(const GpusByName& name, GpuMask free, int count);

}  // namespace berth
