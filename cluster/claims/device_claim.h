// SPDX-License-Identifier: Apache-2.0
//
// DeviceClaim: what a ResourceClaim (resource.k8s.io/v1) asks for, spec.devices of it. Values.
//
// The bounds are those of the API (k8s.io/api resource/v1); an API server admits no more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/values/node_constraints.h"

namespace berth {

inline constexpr std::size_t kMostClaimRequests = 32;
inline constexpr std::size_t kMostSubrequests = 8;
inline constexpr std::size_t kMostSelectors = 32;
inline constexpr std::size_t kMostClaimConstraints = 32;
inline constexpr std::size_t kMostClaimConfigs = 32;
inline constexpr std::size_t kMostDeviceTolerations = 16;

// Devices of one class.
struct DeviceWant {
  std::string name;  // of the subrequest; empty: the request wants exactly this
  std::string device_class;
  std::vector<std::string> selectors;  // CEL; a device has to suit them all
  bool all = false;                    // every device that suits
  std::int64_t count = 1;              // unless all
  std::vector<Toleration> tolerations;
  std::string tolerations_json;  // as written, for the allocation; empty = none
  friend bool operator==(const DeviceWant&, const DeviceWant&) = default;
};

struct DeviceRequest {
  std::string name;
  std::vector<DeviceWant> wants;  // one, or, by preference, those of firstAvailable
  bool first_available = false;
  friend bool operator==(const DeviceRequest&, const DeviceRequest&) = default;
};

struct DeviceConstraint {
  bool distinct = false;  // distinctAttribute; else matchAttribute
  std::string attribute;  // with its domain
  // "request" or "request/subrequest"; empty = all
  std::vector<std::string> requests;
  friend bool operator==(const DeviceConstraint&, const DeviceConstraint&) = default;
};

// Configuration for the driver.
struct DeviceConfig {
  std::vector<std::string> requests;  // as above
  std::string content;                // as written, a JSON object: {"opaque":{..}}
  friend bool operator==(const DeviceConfig&, const DeviceConfig&) = default;
};

struct DeviceClaim {
  std::vector<DeviceRequest> requests;
  std::vector<DeviceConstraint> constraints = {};
  std::vector<DeviceConfig> configs = {};
  friend bool operator==(const DeviceClaim&, const DeviceClaim&) = default;
};

// How allocations, constraints and configurations name what was allocated: "request", or
// "request/subrequest".
std::string NameOf(const DeviceRequest& request, const DeviceWant& want);

// Whether a list of names has that request, or that subrequest of it; an empty list has all.
bool Covers(const std::vector<std::string>& names, const DeviceRequest& request,
            const DeviceWant& want);

// AllocationConfigs: the configuration that an allocation of a claim carries to the driver.
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
