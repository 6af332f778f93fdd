// SPDX-License-Identifier: Apache-2.0
//
// GivenDevices: the devices that a pod has on its node, by somebody who saw them being given. They
// outrank the plan (Placement): without an agent on the node the kubelet picks by itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace berth {

// Who says what a pod has, the weakest first. Anybody who may write a pod can forge all but the
// last.
enum class Evidence : std::uint8_t {
  kPlan,     // Berth, or an annotation from before the pod was admitted
  kAgent,    // the agent of the node, in an annotation
  kKubelet,  // the kubelet, in the pod's status
};

struct GivenDevices {
  static constexpr std::size_t kMostIds = 64;  // of one pod, of each of the three lists
  static constexpr std::size_t kLongestId = 64;
  static constexpr std::size_t kLongestClaimed = 128;

  Evidence by = Evidence::kKubelet;  // never kPlan
  // GPUs, as the device plugin names them, without the number of a replica: sorted, unique.
  std::vector<std::string> ids = {};
  // How many replicas of each of `ids` it has. Empty: they were given whole.
  std::vector<int> replicas = {};
  std::vector<std::string> mig = {};  // MIG devices, in the same way
  // Devices of its claims, as their driver names them in the status; often the name in the
  // ResourceSlice behind other text ("8d1f..-gpu-1"): sorted, unique. Their health alone counts:
  // what a claim holds its own status says.
  std::vector<std::string> claimed = {};
  std::vector<std::string> unwell = {};  // of all these, the unhealthy ones: sorted

  [[nodiscard]] bool IsUnwell(const std::string& id) const {
    return std::ranges::binary_search(unwell, id);
  }
  [[nodiscard]] bool empty() const { return ids.empty() && mig.empty() && claimed.empty(); }
  friend bool operator==(const GivenDevices&, const GivenDevices&) = default;
};

}  // namespace berth
