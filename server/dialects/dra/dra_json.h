// SPDX-License-Identifier: Apache-2.0
//
// The JSON of resource.k8s.io ResourceSlices and ResourceClaims (v1, v1beta2, v1beta1), as
// NVIDIA's DRA driver writes it: which GPU a device is, and which devices a claim holds.
//
// A slice of dynamic MIG has a device for every instance that could be cut. To which GPU it belongs
// is said by parentUUID and by its name, "gpu-<number>-mig-...", which memory slices it has by the
// counters that it consumes, "memory-slice-<n>". Kubernetes 1.35 wants the totals of the counters
// in a slice of their own, 1.34 had them beside the devices: they are not needed here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/claims/device_claim.h"
#include "cluster/claims/device_offers.h"
#include "topology/mig/mig_product.h"

namespace berth::dialects {

inline constexpr std::string_view kGpuDriver = "gpu.nvidia.com";
// Another one that offers GPUs or the like: Berth counts its devices, and places none. A GpuDevice
// is then "MODEL of DRIVER", its pool "DRIVER:POOL", a claimed device "DRIVER/DEVICE".
bool IsOtherGpuDriver(std::string_view driver);

// A GPU or a MIG instance of one.
struct GpuDevice {
  std::string name;
  std::string uuid;          // of the GPU; empty = not said
  int index = -1;            // of the GPU, as the driver counts; -1 = not said
  std::string profile;       // of the instance; empty = the whole GPU
  int start = -1;            // its first memory slice; -1 = not said
  MigUnits units = 0;        // its memory slices; none = not said
  std::string product = {};  // as the driver calls the GPU: "NVIDIA A100-SXM4-40GB"
  bool tainted = false;      // so that a claim gets it only if it tolerates that
  bool divisible = false;    // several claims may have parts of it (allowMultipleAllocations)
};

// The GPU that a device of such a name is or belongs to: "gpu-2", "gpu-2-mig-1g5gb-19-6",
// "gpu-vfio-2"; -1 for other names.
int GpuIndexIn(std::string_view device);

// A text among the attributes of the driver's own domain; "": it has none of that name.
std::string TextAttribute(const cel::Device& device, std::string_view id);

struct ResourceSlice {
  std::string namespace_name;  // always empty
  std::string name;
  std::string pool;
  std::string node;  // empty = not of one node
  std::int64_t generation = 0;
  std::vector<GpuDevice> devices;  // sorted by name; none of another driver
  // All of it; nullptr: of another driver.
  std::shared_ptr<const PublishedSlice> published = nullptr;
};

struct ClaimedDevice {
  std::string pool;
  std::string device;
  // Other claims may have parts of the device too (KEP-5075): it has a shareID.
  bool shared = false;
  // The UID of the pod for whose extended resources kube-scheduler made the claim (KEP-5004);
  // empty: somebody wrote the claim.
  std::string pod = {};
  CapacityUses part = {};  // what it has of a shared device (consumedCapacity)
  friend bool operator==(const ClaimedDevice&, const ClaimedDevice&) = default;
};

struct ResourceClaim {
  std::string namespace_name;
  std::string name;
  // What it holds: allocated devices of the GPU driver, each once. None while it is not allocated.
  std::vector<ClaimedDevice> devices;
  bool allocated = false;  // by whichever driver
  // What it asks for, of one that is not allocated and may be Berth's to allocate; nullptr also
  // where that was not read.
  std::shared_ptr<const DeviceClaim> asks = nullptr;
  std::int64_t version = 0;  // wire::VersionNumber
};

// Error: kInvalidArgument for what is not JSON, not such an object, or without the names that make
// it one.
Result<ResourceSlice> DecodeResourceSlice(const PaddedText& text);
// Access for administration holds nothing. Errors: as above.
Result<ResourceClaim> DecodeResourceClaim(const PaddedText& text);

}  // namespace berth::dialects
