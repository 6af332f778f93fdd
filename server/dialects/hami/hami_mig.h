// SPDX-License-Identifier: Apache-2.0
//
// MIG devices of HAMi: the GPUs that its device plugin cuts, and what its scheduler gave to a pod.
//
//   node  hami.io/node-nvidia-register
//         [{"id":"GPU-a","index":1,"count":7,"type":"NVIDIA-NVIDIA H100 80GB HBM3","mode":"mig",
//           "health":true,"migProfiles":[{"name":"1g.10gb","memoryMB":9984,
//                                         "placements":[{"start":0,"size":1}, ...]}, ...]}, ...]
//         An index and a count of 0, and a health of false, are left out. GPUs of another mode are
//         not cut: each is announced as `count` devices, for as many pods. Up to HAMi 2.5 it is
//         GPU-a,10,81920,100,NVIDIA-NVIDIA A100-SXM4-80GB,0,true:... of id, count, devmem, devcore,
//         type, numa, health, and from some release on index and mode. That form does not say where
//         MIG devices can begin: of a node with some nothing more is read.
//   node  hami.io/device-cordon: GPU-a,GPU-b: nothing more of these is given
//   pod   hami.io/vgpu-mig-allocations, written before the pod is bound and kept
//         [{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU-a","profile":"1g.10gb",
//           "placement":{"start":0,"size":1}}, ...]
//
// HAMi's plugin serves pods that carry its annotations, and no others. Either HAMi's scheduler
// writes these, and the devices are `foreign`, or Berth does (hami_binding.h): the option
// hami.giveDevices. Of the profiles those are offered that the plugin makes: the smallest one of so
// many slices, without extension (its table profileNameToGIProfileID). (HAMi at 0136974,
// pkg/device/devices.go; 31a8ae5, pkg/device/nvidia/mig_allocations.go; 079cb7c,
// pkg/device-plugin/nvidiadevice/nvinternal/plugin/migmgr.go.) Fields that are not named here are
// not looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/values/placement.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/mig_json.h"
#include "server/wire/pod/dialect.h"

namespace berth::dialects {

inline constexpr std::string_view kHamiMigAnnotation = "hami.io/vgpu-mig-allocations";

// MigSpec::agent of a node whose devices HAMi's plugin makes.
inline constexpr std::string_view kHamiAgent = "hami";

inline constexpr std::string_view kHamiCordonAnnotation = "hami.io/device-cordon";

// The value of an annotation that is a list, as JSON; "discarded" where it is not JSON. Error:
// kInvalidArgument where it is too long.
Result<wire::Json> ParseHamiList(std::string_view text);

// The same of the register, in either form; "discarded" too where the older one is of MIG devices.
Result<wire::Json> ParseHamiRegister(std::string_view text);

// Of a node. References and views: valid during the call.
struct HamiFacts {
  const wire::Json& registered;  // annotation hami.io/node-nvidia-register
  std::string_view cordoned;     // annotation hami.io/device-cordon
  std::string_view label;        // of its product
  bool give = false;             // Berth gives the devices
};

struct HamiMig {
  std::optional<wire::MigAnnouncement> announced;  // nothing where no GPU is partitioned
  // How many of the node's allocatable nvidia.com/gpu stand for these GPUs, and are none.
  std::int64_t devices = 0;
  // HAMi's agent serves GPUs that it does not cut, too: to pods that HAMi's scheduler has placed,
  // and to no others (Allocate of its plugin fails without HAMi's annotations on the pod).
  bool serves_others = false;
  bool shares_others = false;            // among several users each, by what is known
  std::vector<GpuSpec> others = {};      // those GPUs, by index, that its register has
  std::vector<std::string> models = {};  // of these
};

// A profile that the catalogue has otherwise, or not at all, is taken as HAMi read it from the GPU.
// Error: kInvalidArgument with the path in the register.
Result<HamiMig> ReadHamiMig(const HamiFacts& facts);

// What a pod has, sorted. Error: kInvalidArgument with the path.
Result<std::vector<MigGrant>> ParseHamiMigAllocations(std::string_view text);

}  // namespace berth::dialects
