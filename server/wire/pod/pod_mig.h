// SPDX-License-Identifier: Apache-2.0
//
// What a pod asks for in MIG devices.
//
//   resources nvidia.com/mig-PROFILE, also with .shared behind it (topology/mig/mig_product.h)
//   nvidia.com/gpu: N with one or both of the annotations
//     berth.dev/mig-min-slices: "2"         compute slices
//     berth.dev/mig-min-memory-gib: "10"    usable memory
//   which are N devices, each of any profile that has at least so much
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/values/pod_request.h"

namespace berth::wire {

// How many devices of each name; sorted by profile, plain ones first.
struct MigCount {
  MigResource resource;
  std::int64_t count = 0;
  friend bool operator==(const MigCount&, const MigCount&) = default;
};
class MigCounts {
 public:
  void Add(const MigResource& resource, std::int64_t count);
  MigCounts& operator+=(const MigCounts& other);
  // The larger of each.
  void Raise(const MigCounts& other);
  [[nodiscard]] bool empty() const { return counts_.empty(); }
  [[nodiscard]] std::int64_t total() const;
  // Requires: total() is at most kMaxMigDevicesPerPod.
  [[nodiscard]] MigSlices ToSlices() const;

 private:
  MigCount& Of(const MigResource& resource);

  std::vector<MigCount> counts_;
};

bool IsMigNeedKey(std::string_view key);
// Reads one of the two annotations. Error: kInvalidArgument "want 1..100000, got TEXT".
Status ReadMigNeed(std::string_view key, std::string_view value, MigWant& need);

// Makes the pod's whole GPUs, and those of its containers, devices that satisfy the need. Error:
// kInvalidArgument where the pod asks for something else than whole GPUs.
Status ApplyMigNeed(const MigWant& need, PodRequest& pod);

// Error: a MIG resource as the pages of some clouds write it, "nvidia.com/mig1g.5gb".
Status CheckMigName(std::string_view resource);

}  // namespace berth::wire
