// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/dra_json.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/quantity.h"
#include "base/text.h"
#include "cluster/node/node.h"
#include "server/dialects/dra/slice_json.h"
#include "server/wire/json/object_reader.h"

namespace berth::dialects {
namespace {

using wire::ForEachField;
using wire::IsField;
using wire::TextOf;

using simdjson::ondemand::array;
using simdjson::ondemand::object;
using simdjson::ondemand::value;

constexpr std::string_view kOfExtendedResources = "resource.kubernetes.io/extended-resource-claim";
constexpr std::string_view kMemorySlice = "memory-slice-";
constexpr int kHighest = kMaxGpusPerNode - 1;  // of GPUs and of memory slices
constexpr std::int64_t kAllOfIt = std::numeric_limits<std::int64_t>::max();

// An attribute's name without the driver's own domain, which may be left out.
std::string_view Attribute(std::string_view key) {
  return key.starts_with(kGpuDriver) && key.substr(kGpuDriver.size()).starts_with('/')
             ? key.substr(kGpuDriver.size() + 1)
             : key;
}

// {"string": ".."}; "" for a value of another type.
std::string TextAttribute(object attribute) {
  std::string text;
  ForEachField(attribute, [&text](std::string_view type, value content) {
    if (type == "string") text = TextOf(content);
  });
  return text;
}

class DeviceReader {
 public:
  GpuDevice Read(object device) {
    ReadFields(device);
    device_.uuid = type_ == "mig" ? parent_uuid_ : uuid_;
    if (type_ != "mig") device_.profile.clear();
    device_.index = GpuIndexIn(device_.name);
    return std::move(device_);
  }

 private:
  void ReadFields(object device) {
    ForEachField(device, [this](std::string_view key, value content) {
      if (key == "name") device_.name = TextOf(content);
      if (key == "basic") ReadFields(content.get_object());  // v1beta1
      if (key == "attributes") ReadAttributes(content.get_object());
      if (key == "consumesCounters") ReadCounters(content.get_array());
      if (key == "allowMultipleAllocations") device_.divisible = content.get_bool();
      if (key == "taints") ReadTaints(content.get_array());
    });
  }

  void ReadAttributes(object attributes) {
    ForEachField(attributes, [this](std::string_view key, value content) {
      const std::string_view name = Attribute(key);
      std::string* const target = name == "type"          ? &type_
                                  : name == "uuid"        ? &uuid_
                                  : name == "parentUUID"  ? &parent_uuid_
                                  : name == "profile"     ? &device_.profile
                                  : name == "productName" ? &device_.product
                                                          : nullptr;
      if (target != nullptr) *target = TextAttribute(content.get_object());
    });
  }

  void ReadCounters(array sets) {
    for (auto set : sets) {
      ForEachField(set.get_object(), [this](std::string_view key, value content) {
        if (key != "counters") return;
        ForEachField(content.get_object(), [this](std::string_view counter, value) {
          if (!counter.starts_with(kMemorySlice)) return;
          const auto slice = ParseInt(counter.substr(kMemorySlice.size()), 0, kHighest);
          if (!slice) return;
          const int number = static_cast<int>(*slice);
          if (device_.start < 0 || number < device_.start) device_.start = number;
          if (number < kMaxMigUnits) device_.units |= static_cast<MigUnits>(1U << number);
        });
      });
    }
  }

  void ReadTaints(array taints) {
    for (auto taint : taints) {
      ForEachField(taint.get_object(), [this](std::string_view key, value content) {
        if (key != "effect") return;
        const std::string_view effect = content.get_string();
        device_.tainted = device_.tainted || effect == "NoSchedule" || effect == "NoExecute";
      });
    }
  }

  GpuDevice device_;
  std::string type_;
  std::string uuid_;
  std::string parent_uuid_;
};

void ReadPool(object pool, ResourceSlice& slice) {
  ForEachField(pool, [&slice](std::string_view key, value content) {
    if (key == "name") slice.pool = TextOf(content);
    if (key == "generation") slice.generation = content.get_int64();
  });
}

Status ReadSliceSpec(object spec, ResourceSlice& slice) {
  std::string driver;
  std::size_t nameless = 0;
  ForEachField(spec, [&](std::string_view key, value content) {
    if (key == "driver") driver = TextOf(content);
    if (key == "nodeName") slice.node = TextOf(content);
    if (key == "pool") ReadPool(content.get_object(), slice);
    if (key != "devices") return;
    for (auto device : content.get_array()) {
      slice.devices.push_back(DeviceReader().Read(device.get_object()));
      nameless += slice.devices.back().name.empty() ? 1U : 0U;
    }
  });
  if (driver != kGpuDriver) slice.devices.clear();
  if (driver.empty()) return Invalid("spec.driver: want a name, got \"\"");
  if (slice.pool.empty()) return Invalid("spec.pool.name: want a name, got \"\"");
  if (nameless > 0) {
    return Invalid("spec.devices: want a name of each, got " + std::to_string(nameless) +
                   " without");
  }
  return {};
}

// One entry of status.allocation.devices.results.
struct AllocatedDevice {
  std::string driver;
  ClaimedDevice device;
  bool for_administration = false;
};

AllocatedDevice ReadResult(object result) {
  AllocatedDevice read;
  ForEachField(result, [&read](std::string_view key, value content) {
    if (key == "driver") read.driver = TextOf(content);
    if (key == "pool") read.device.pool = TextOf(content);
    if (key == "device") read.device.device = TextOf(content);
    if (key == "shareID") read.device.shared = !TextOf(content).empty();
    if (key == "adminAccess") read.for_administration = content.get_bool();
    if (key != "consumedCapacity") return;
    ForEachField(content.get_object(), [&read](std::string_view name, value amount) {
      // One that cannot be read, or is negative, holds all there is.
      const auto much = Quantity::Parse(QuantityText(amount));
      const std::int64_t milli = much && much->sign() >= 0 ? much->MilliValue() : kAllOfIt;
      AddUses(read.device.part, {{std::string(name), milli}});
    });
  });
  return read;
}

Status ReadResults(array results, ResourceClaim& claim) {
  Status status;
  std::size_t position = 0;
  for (auto result : results) {
    AllocatedDevice read = ReadResult(result.get_object());
    const std::size_t at = position++;
    if (read.driver != kGpuDriver || read.for_administration) continue;
    if (read.device.pool.empty() || read.device.device.empty()) {
      status = Invalid("status.allocation.devices.results[" + std::to_string(at) +
                       "]: want a pool and a device, got \"" + read.device.pool + "\" and \"" +
                       read.device.device + "\"");
    }
    // Of one device a claim may have several parts.
    const auto same = std::ranges::find_if(claim.devices, [&read](const ClaimedDevice& other) {
      return other.pool == read.device.pool && other.device == read.device.device &&
             other.shared == read.device.shared;
    });
    if (same == claim.devices.end()) {
      claim.devices.push_back(std::move(read.device));
    } else {
      AddUses(same->part, read.device.part);
    }
  }
  return status;
}

Status ReadClaimStatus(object status, ResourceClaim& claim) {
  Status results;
  ForEachField(status, [&](std::string_view key, value allocation) {
    if (key != "allocation") return;
    claim.allocated = true;
    ForEachField(allocation.get_object(), [&](std::string_view part, value devices) {
      if (part != "devices") return;
      ForEachField(devices.get_object(), [&](std::string_view name, value list) {
        if (name == "results") results = ReadResults(list.get_array(), claim);
      });
    });
  });
  return results;
}

// The UID of the pod that controls the claim, if kube-scheduler made it for the pod's extended
// resources (findExtendedResourceClaim in its plugin DynamicResources).
std::string PodOfExtendedResources(object claim) {
  bool is_made = false;
  std::string pod;
  ForEachField(claim, [&](std::string_view key, value metadata) {
    if (key != "metadata") return;
    ForEachField(metadata.get_object(), [&](std::string_view name, value content) {
      if (name == "annotations") {
        ForEachField(content.get_object(), [&is_made](std::string_view annotation, value text) {
          if (annotation == kOfExtendedResources) is_made = TextOf(text) == "true";
        });
      }
      if (name != "ownerReferences") return;
      for (auto owner : content.get_array()) {
        std::string uid;
        bool controls = false;
        ForEachField(owner.get_object(), [&](std::string_view field, value it) {
          if (field == "uid") uid = TextOf(it);
          if (field == "controller") controls = it.get_bool();
        });
        if (controls) pod = std::move(uid);
      }
    });
  });
  return is_made && pod.size() <= wire::kMostUidBytes ? pod : "";
}

// The names, and what `part` is read by.
template <class Object, class Read>
Result<Object> ReadPart(const PaddedText& text, std::string_view kind, std::string_view part,
                        Read read_part) {
  Object target;
  Status status;
  BERTH_TRY(wire::ObjectMeta meta, wire::ReadNamed(text, kind, [&](std::string_view key, value it) {
              if (key == part) status = read_part(it.get_object(), target);
            }));
  BERTH_TRY_STATUS(status);
  target.namespace_name = std::move(meta.namespace_name);
  target.name = std::move(meta.name);
  if constexpr (requires { target.version; }) {
    target.version = wire::VersionNumber(meta.resource_version);
  }
  return target;
}

}  // namespace

int GpuIndexIn(std::string_view device) {
  for (const std::string_view prefix : {"gpu-vfio-", "gpu-"}) {
    if (!device.starts_with(prefix)) continue;
    const std::string_view rest = device.substr(prefix.size());
    const auto number = ParseInt(rest.substr(0, rest.find('-')), 0, kHighest);
    return number ? static_cast<int>(*number) : -1;
  }
  return -1;
}

Result<ResourceSlice> DecodeResourceSlice(const PaddedText& text) {
  BERTH_TRY(ResourceSlice slice,
            ReadPart<ResourceSlice>(text, "ResourceSlice", "spec", ReadSliceSpec));
  std::ranges::sort(slice.devices, {}, &GpuDevice::name);
  BERTH_TRY(PublishedSlice published, DecodePublishedSlice(text));
  if (published.driver == kGpuDriver) {
    slice.published = std::make_shared<const PublishedSlice>(std::move(published));
  }
  return slice;
}

Result<ResourceClaim> DecodeResourceClaim(const PaddedText& text) {
  BERTH_TRY(ResourceClaim claim,
            ReadPart<ResourceClaim>(text, "ResourceClaim", "status", ReadClaimStatus));
  if (claim.devices.empty()) return claim;
  std::string pod;
  BERTH_TRY_STATUS(wire::ReadObject(text, [&pod](object whole) -> Status {
    pod = PodOfExtendedResources(whole);
    return {};
  }));
  for (ClaimedDevice& device : claim.devices) device.pod = pod;
  return claim;
}

}  // namespace berth::dialects
