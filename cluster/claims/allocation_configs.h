// SPDX-License-Identifier: Apache-2.0
//
// AllocationConfigs: the configuration that an allocation of a claim carries to the driver.
//
// As kube-scheduler's allocator writes it (k8s.io/dynamic-resource-allocation
// structured/internal/incubating, Allocate, 1.37): that of each class once, for the requests that
// have the class, in the order of the requests; then that of the claim, if one of its requests got
// something. What is for all requests names none.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/claims/device_claim.h"

namespace berth {

struct AllocationConfig {
  bool of_class = false;              // else of the claim
  std::vector<std::string> requests;  // "request" or "request/subrequest"; empty = all
  std::string content;                // DeviceConfig::content
  friend bool operator==(const AllocationConfig&, const AllocationConfig&) = default;
};

using ConfigsOfClass = std::function<std::vector<DeviceConfig>(std::string_view device_class)>;

// `wants`: which of its wants each request of the claim got.
std::vector<AllocationConfig> ConfigsOf(const DeviceClaim& claim, std::span<const int> wants,
                                        const ConfigsOfClass& of_class);

}  // namespace berth
