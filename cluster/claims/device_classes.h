// SPDX-License-Identifier: Apache-2.0
//
// DeviceClasses: the extended resources that Kubernetes' Dynamic Resource Allocation gives out
// (KEP-5004). A pod asks for a resource by its name. On a node that does not list the resource in
// its allocatable, kube-scheduler makes a ResourceClaim for devices of the class with the name:
//
//   spec.extendedResourceName                    of several classes the newest, then the first by
//                                                name
//   deviceclass.resource.kubernetes.io/<class>   of every class
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cluster/claims/device_claim.h"
#include "topology/mig/mig_product.h"

namespace berth {

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
  void Put(DeviceClass added) BERTH_EXCLUDES(mutex_);
  void Remove(std::string_view name) BERTH_EXCLUDES(mutex_);
  // Replaces all of them by those of a list.
  void Reset(std::vector<DeviceClass> classes) BERTH_EXCLUDES(mutex_);

 private:
  // Of those with that extended resource; nullptr: none has it.
  [[nodiscard]] const DeviceClass* Newest(std::string_view resource) const BERTH_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, DeviceClass, std::less<>> by_name_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
