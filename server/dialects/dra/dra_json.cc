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
using wire::TextOf;
using wire::WithField;

constexpr std::string_view kOfExtendedResources = "resource.kubernetes.io/extended-resource-claim";
constexpr std::string_view kMemorySlice = "memory-slice-";
constexpr int kHighest = kMaxGpusPerNode - 1;  // of GPUs and of memory slices
constexpr std::int64_t kAllOfIt = std::numeric_limits<std::int64_t>::max();

GpuDevice GpuDeviceOf(const PublishedDevice& device) {
  const bool is_mig = TextAttribute(device.seen, "type") == "mig";
  GpuDevice gpu{.name = device.name,
                .uuid = TextAttribute(device.seen, is_mig ? "parentUUID" : "uuid"),
                .index = GpuIndexIn(device.name),
                .profile = is_mig ? TextAttribute(device.seen, "profile") : "",
                .product = TextAttribute(device.seen, "productName"),
                .tainted = !device.taints.empty(),
                .divisible = device.divisible};
  for (const ConsumedCounter& consumed : device.consumed()) {
    if (!consumed.counter.starts_with(kMemorySlice)) continue;
    const auto slice = ParseInt(consumed.counter.substr(kMemorySlice.size()), 0, kHighest);
    if (!slice) continue;
    const int number = static_cast<int>(*slice);
    if (gpu.start < 0 || number < gpu.start) gpu.start = number;
    if (number < kMaxMigUnits) gpu.units |= static_cast<MigUnits>(1U << number);
  }
  return gpu;
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
    const bool is_other = IsOtherGpuDriver(read.driver);
    if ((read.driver != kGpuDriver && !is_other) || read.for_administration) continue;
    if (read.device.pool.empty() || read.device.device.empty()) {
      status = Invalid("status.allocation.devices.results[" + std::to_string(at) +
                       "]: want a pool and a device, got \"" + read.device.pool + "\" and \"" +
                       read.device.device + "\"");
    }
    if (is_other) read.device.pool.insert(0, read.driver + ":");
    if (is_other) read.device.device.insert(0, read.driver + "/");
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
  WithField(status, "allocation", [&](value allocation) {
    claim.allocated = true;
    WithField(allocation.get_object(), "devices", [&](value devices) {
      WithField(devices.get_object(), "results",
                [&](value list) { results = ReadResults(list.get_array(), claim); });
    });
  });
  return results;
}

// The UID of the pod that controls the claim, if kube-scheduler made it for the pod's extended
// resources (findExtendedResourceClaim in its plugin DynamicResources).
std::string PodOfExtendedResources(object claim) {
  bool is_made = false;
  std::string pod;
  WithField(claim, "metadata", [&](value metadata) {
    ForEachField(metadata.get_object(), [&](std::string_view name, value content) {
      if (name == "annotations") {
        WithField(content.get_object(), kOfExtendedResources,
                  [&is_made](value text) { is_made = TextOf(text) == "true"; });
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

bool IsOtherGpuDriver(std::string_view driver) {
  for (const char* const first : {"gpu.", "gaudi.", "tpu.", "npu.", "neuron."}) {
    if (driver.starts_with(first)) return driver != kGpuDriver;
  }
  return false;
}

std::string TextAttribute(const cel::Device& device, std::string_view id) {
  const cel::AttributeValue* const value = device.attribute(device.driver(), id);
  const auto* const text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? "" : *text;
}

Result<ResourceSlice> DecodeResourceSlice(const PaddedText& text) {
  BERTH_TRY(PublishedSlice published, DecodePublishedSlice(text));
  ResourceSlice slice{.namespace_name = {},
                      .name = published.name,
                      .pool = published.pool,
                      .node = published.node,
                      .generation = published.generation,
                      .devices = {}};
  if (IsOtherGpuDriver(published.driver)) {
    slice.pool.insert(0, published.driver + ":");
    for (const PublishedDevice& device : published.devices) {
      std::string model = "devices";
      for (const char* said : {"tpuGen", "model", "productName"})
        if (auto named = TextAttribute(device.seen, said); !named.empty()) model = named;
      slice.devices.push_back({device.name, "", -1, "", -1, 0, model + " of " + published.driver});
    }
  }
  if (published.driver != kGpuDriver) return slice;
  for (const PublishedDevice& device : published.devices) {
    slice.devices.push_back(GpuDeviceOf(device));
  }
  std::ranges::sort(slice.devices, {}, &GpuDevice::name);
  slice.published = std::make_shared<const PublishedSlice>(std::move(published));
  return slice;
}

Result<ResourceClaim> DecodeResourceClaim(const PaddedText& text) {
  ResourceClaim claim;
  Status status;
  BERTH_TRY(wire::ObjectMeta meta,
            wire::ReadNamed(text, "ResourceClaim", [&](std::string_view key, value it) {
              if (key == "status") status = ReadClaimStatus(it.get_object(), claim);
            }));
  BERTH_TRY_STATUS(status);
  claim.namespace_name = std::move(meta.namespace_name);
  claim.name = std::move(meta.name);
  claim.version = wire::VersionNumber(meta.resource_version);
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
