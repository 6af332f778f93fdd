// SPDX-License-Identifier: Apache-2.0
//
// Node: one machine - what it has (NodeSpec, shared and immutable) and what is free on it.
//
// Free amounts are what the spec has less the sum of the placements on the node, so the order in
// which pods came and went leaves no trace. They can be negative: pods may be bound past Berth.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/placement.h"
#include "cluster/pod_request.h"

namespace berth {

constexpr int kMaxGpusPerNode = 64;  // device sets are 64-bit masks

struct GpuSpec {
  std::string uuid;             // empty = not known
  std::int64_t memory_mib = 0;  // 0 = not known: memory of this GPU is then not tracked
  bool healthy = true;
  friend bool operator==(const GpuSpec&, const GpuSpec&) = default;
};

struct NodeSpec {
  std::string name;       // DNS-1123
  std::string gpu_model;  // as the node publishes it; empty without GPUs
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  bool ready = true;  // able to run new pods
  std::vector<GpuSpec> gpus;
  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

// Error: kInvalidArgument naming the field: no name, a negative capacity, more than kMaxGpusPerNode
// GPUs.
Status Validate(const NodeSpec& spec);

// What is free on one GPU.
struct GpuFree {
  int milli = kMilliPerGpu;
  std::int64_t memory_mib = 0;
  [[nodiscard]] bool idle() const { return milli == kMilliPerGpu; }
  friend bool operator==(const GpuFree&, const GpuFree&) = default;
};

// How many pods on the node ask for the same number of GPUs; gpus = 0 stands for a share.
struct Tenants {
  int gpus = 0;
  int pods = 0;
  friend bool operator==(const Tenants&, const Tenants&) = default;
};

class Node {
 public:
  explicit Node(std::shared_ptr<const NodeSpec> spec);

  [[nodiscard]] const NodeSpec& spec() const { return *spec_; }
  [[nodiscard]] std::int64_t free_cpu_milli() const { return free_cpu_milli_; }
  [[nodiscard]] std::int64_t free_memory_bytes() const { return free_memory_bytes_; }
  // One entry per GPU, by index.
  [[nodiscard]] std::span<const GpuFree> gpus() const { return gpus_; }
  // GPU pods on the node, by ascending number of GPUs.
  [[nodiscard]] std::span<const Tenants> tenants() const { return tenants_; }
  // Sum of free GPU compute, thousandths.
  [[nodiscard]] std::int64_t free_gpu_milli() const;

  // Whether the placement fits what is free now. Error: kConflict naming the resource.
  [[nodiscard]] Status CanTake(const Placement& placement) const;

  // Adds a pod / removes one that was added. Grants on GPUs that the spec does not have are
  // ignored.
  void Take(const Placement& placement, const RequestShape& shape);
  void GiveBack(const Placement& placement, const RequestShape& shape);

  friend bool operator==(const Node& a, const Node& b);

 private:
  void Move(const Placement& placement, const RequestShape& shape, int sign);

  std::shared_ptr<const NodeSpec> spec_;
  std::int64_t free_cpu_milli_;
  std::int64_t free_memory_bytes_;
  std::vector<GpuFree> gpus_;
  std::vector<Tenants> tenants_;
};

}  // namespace berth
