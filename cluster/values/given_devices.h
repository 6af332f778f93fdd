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
  static constexpr std::size_t kMostIds = 64;  // of one pod
  static constexpr std::size_t kLongestId = 64;

  Evidence by = Evidence::kKubelet;  // never kPlan
  // As the device plugin names the devices, without the number of a replica: sorted, unique.
  std::vector<std::string> ids = {};
  std::vector<std::string> unwell = {};  // of these, the unhealthy ones: sorted

  [[nodiscard]] bool IsUnwell(const std::string& id) const {
    return std::ranges::binary_search(unwell, id);
  }
  friend bool operator==(const GivenDevices&, const GivenDevices&) = default;
};

}  // namespace berth
