// SPDX-License-Identifier: Apache-2.0
//
// DeviceClaim: what a ResourceClaim (resource.k8s.io/v1) asks for, spec.devices of it. Values.
//
// The bounds are those of the API (k8s.io/api resource/v1); an API server admits no more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

// OpenClaims: the ResourceClaims that the watch shows: what those without devices ask for, and
// where the devices of the others are. Claims of one template share what they ask for.
//
// Requests to the API server know more than the watch, which is late: an allocation that was there
// before such an answer (Outdate) counts no more when the watch comes to show it.

struct KnownClaim {
  std::int64_t version = 0;  // the object's; 0 = it was not said
  bool allocated = false;
  std::string node = {};  // allocated: of its devices; "" = not known
  // The UID of the pod for whose extended resources kube-scheduler made and allocated it; "" = it
  // is another one.
  std::string made_for = {};
  // nullptr: it is allocated, or kube-scheduler's to allocate, or there was no room to keep it.
  std::shared_ptr<const DeviceClaim> asks = nullptr;
};

// Any thread may call any function.
class OpenClaims {
 public:
  // About what is kept of what claims ask for, each content counted once. Of those beyond it
  // nothing is kept but that they are there.
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;

  // Claims whose newest state the watch has yet to show. Of those beyond it, what the watch shows
  // counts though it may be old.
  static constexpr std::size_t kMostAwaited = 4096;

  explicit OpenClaims(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  using Shown = std::vector<std::pair<std::string, KnownClaim>>;  // by "namespace/name"

  // Adds them, or replaces those of that name. replace_all: there are no others.
  void Put(Shown claims, bool replace_all) BERTH_EXCLUDES(mutex_);
  void Remove(const std::string& claim) BERTH_EXCLUDES(mutex_);

  // Something newer than what was before this version of the claim is known: older ones, shown or
  // to be shown, have no devices.
  void Outdate(const std::string& claim, std::int64_t version) BERTH_EXCLUDES(mutex_);

  // The newest that the watch has shown of it; nullopt: never, or it is gone.
  [[nodiscard]] std::optional<KnownClaim> Find(const std::string& claim) const
      BERTH_EXCLUDES(mutex_);
  // Whether kube-scheduler has made a claim for what the pod asks for by the name of a resource:
  // one in its namespace says so. pod: "namespace/UID".
  [[nodiscard]] bool IsMadeFor(const std::string& pod) const BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t bytes() const BERTH_EXCLUDES(mutex_);

 private:
  struct Content {
    std::shared_ptr<const DeviceClaim> asks;
    std::size_t claims = 0;
    std::size_t bytes = 0;
  };
  using Contents = std::list<Content>;
  struct Entry {
    KnownClaim known;
    Contents::iterator content;  // end: it keeps none
  };

  void Drop(const std::string& claim) BERTH_REQUIRES(mutex_);
  // Of what the watch shows now.
  void Judge(const std::string& claim, KnownClaim& known) BERTH_REQUIRES(mutex_);
  // Of that content, a known one if it is among the newest; end: there is no room for it.
  Contents::iterator Keep(std::shared_ptr<const DeviceClaim> asks) BERTH_REQUIRES(mutex_);

  const std::size_t most_bytes_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> claims_ BERTH_GUARDED_BY(mutex_);
  // The oldest version that counts, of claims that the watch has yet to show as new as that.
  std::map<std::string, std::int64_t> awaited_ BERTH_GUARDED_BY(mutex_);
  Contents contents_ BERTH_GUARDED_BY(mutex_);  // the newest first
  // So many claims, by "namespace/UID".
  std::map<std::string, int> made_for_ BERTH_GUARDED_BY(mutex_);
  std::size_t bytes_ BERTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace berth
