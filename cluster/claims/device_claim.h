// SPDX-License-Identifier: Apache-2.0
//
// DeviceClaim: what a ResourceClaim (resource.k8s.io/v1) asks for, spec.devices of it. Values.
//
// The bounds are those of the API (k8s.io/api resource/v1); an API server admits no more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cluster/values/node_constraints.h"
#include "topology/mig/mig_product.h"

namespace berth {

inline constexpr std::size_t kMostClaimRequests = 32;
inline constexpr std::size_t kMostSubrequests = 8;
inline constexpr std::size_t kMostSelectors = 32;
inline constexpr std::size_t kMostClaimConstraints = 32;
inline constexpr std::size_t kMostClaimConfigs = 32;
inline constexpr std::size_t kMostDeviceTolerations = 16;
inline constexpr std::size_t kMostCapacities = 32;

// How much of each capacity of a device, in thousandths, by its name as published: "ID" or
// "DOMAIN/ID".
using CapacityUses = std::map<std::string, std::int64_t, std::less<>>;

// Adds them; beyond 64 bits it is as much as 64 bits hold.
void AddUses(CapacityUses& to, const CapacityUses& added);

// Devices of one class.
struct DeviceWant {
  std::string name;  // of the subrequest; empty: the request wants exactly this
  std::string device_class;
  std::vector<std::string> selectors;  // CEL; a device has to suit them all
  bool all = false;                    // every device that suits
  std::int64_t count = 1;              // unless all
  std::vector<Toleration> tolerations;
  std::string tolerations_json;  // as written, for the allocation; empty = none
  CapacityUses capacity = {};    // at least so much of a device
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

// DeviceClasses: the extended resources that Kubernetes' Dynamic Resource Allocation gives out
// (KEP-5004). A pod asks for a resource by its name. On a node that does not list the resource in
// its allocatable, kube-scheduler makes a ResourceClaim for devices of the class with the name:
//
//   spec.extendedResourceName                    of several classes the newest, then the first by
//                                                name
//   deviceclass.resource.kubernetes.io/<class>   of every class

inline constexpr std::string_view kDeviceClassPrefix = "deviceclass.resource.kubernetes.io/";

// Resources of whole GPUs that Berth counts by; pods that ask for others are left to
// kube-scheduler.
inline constexpr std::size_t kMostWholeNames = 64;

struct DeviceClass {
  std::string namespace_name;  // always empty
  std::string name;
  std::string extended_resource;  // spec.extendedResourceName; empty = none
  std::string created;            // as Kubernetes writes times: a later one compares greater
  // The profile, if its devices are the MIG devices of one profile and no others; nullopt: unknown.
  std::optional<MigProfile> profile;
  bool whole = false;  // its devices are whole GPUs of one driver and no others
  std::vector<std::string> selectors = {};  // CEL; a device has to suit them all
  bool readable = true;                     // no selector is of another kind
  std::vector<DeviceConfig> configs = {};   // of all its devices: without names of requests
  friend bool operator==(const DeviceClass&, const DeviceClass&) = default;
};

// Any thread may call any function.
class DeviceClasses {
 public:
  // The class of that resource; nullopt: none.
  [[nodiscard]] std::optional<DeviceClass> ClassOf(std::string_view resource) const
      BERTH_EXCLUDES(mutex_);
  // nullopt: there is none of that name.
  [[nodiscard]] std::optional<DeviceClass> Named(std::string_view name) const
      BERTH_EXCLUDES(mutex_);
  // By name.
  [[nodiscard]] std::vector<DeviceClass> All() const BERTH_EXCLUDES(mutex_);
  // The resources of all classes; sorted, each once.
  [[nodiscard]] std::vector<MigProfile> Profiles() const BERTH_EXCLUDES(mutex_);

  // By resource, the classes of whole GPUs that it stands for: at most kMostWholeNames, the first
  // by name.
  [[nodiscard]] std::map<std::string, DeviceClass> WholeByName() const BERTH_EXCLUDES(mutex_);

  // Adds it, or replaces the one of that name.
  void Put(const DeviceClass& added) BERTH_EXCLUDES(mutex_);
  void Remove(std::string_view name) BERTH_EXCLUDES(mutex_);
  // Replaces all of them by those of a list.
  void Reset(const std::vector<DeviceClass>& classes) BERTH_EXCLUDES(mutex_);

 private:
  // Of those with that extended resource; nullptr: none has it.
  [[nodiscard]] const DeviceClass* Newest(std::string_view resource) const BERTH_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, DeviceClass, std::less<>> by_name_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
