// SPDX-License-Identifier: Apache-2.0
//
// HAMi's dialect: what its device plugin publishes on Nodes (MIG devices and links as below), what
// its users write on Pods (below), and what its plugin reads of a pod that Berth binds
// (hami_binding.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/values/placement.h"
#include "server/dialects/vgpu/vgpu_devices.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/mig_json.h"
#include "server/wire/pod/dialect.h"
#include "server/wire/pod/pod_parts.h"
#include "topology/links/link_matrix.h"

namespace berth::dialects {

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

// What HAMi's users ask for:
//
//   annotation nvidia.com/vgpu-mode: mig
//   resources  nvidia.com/gpu: N with nvidia.com/gpumem: M, which are N MIG devices, each of any
//              profile that has at least M MiB; nvidia.com/gpucores does not choose a profile, with
//              HAMi neither
//
//   no mode, or hami-core
//   resources  nvidia.com/gpu with nvidia.com/gpumem, nvidia.com/gpumem-percentage and
//              nvidia.com/gpucores: a part of a GPU (vgpu/vgpu_devices.h), if Berth gives the
//              devices of HAMi's agent
//
//   annotation nvidia.com/use-gputype: A100,H100 and nouse-gputype: T4
//              parts of the names of models, whatever the case
//   annotation nvidia.com/numa-bind: "true"
//              all GPUs of one NUMA node, as berth.dev/numa: required, unless that says preferred
//   annotation nvidia.com/use-gpuuuid: GPU-a,GPU-b and nouse-gpuuuid: GPU-c
//              certain GPUs; those that are refused are refused too where they are accepted
//   annotation hami.io/gpu-scheduler-policy: spread, or hami.io/node-scheduler-policy: spread
//              as berth.dev/spread: card or node by the controller (wire/pod/pod_needs.h), where
//              the pod does not say that itself. HAMi takes the least used card or node for it,
//              whatever uses the others; other policies choose nothing here
//
// What else they can say is refused rather than passed over: the GPU of a MIG device, other modes,
// and a part of a GPU which is HAMi's scheduler's to give. (HAMi at c447cab,
// pkg/device/nvidia/device.go.)

inline constexpr std::string_view kHamiMemoryResource = "nvidia.com/gpumem";
inline constexpr std::string_view kHamiMemoryPercentResource = "nvidia.com/gpumem-percentage";
inline constexpr std::string_view kHamiCoresResource = "nvidia.com/gpucores";

inline constexpr std::array kHamiResources = {kHamiMemoryResource, kHamiMemoryPercentResource,
                                              kHamiCoresResource};

// The annotations by which HAMi's users choose devices: the mode, those that Berth reads, the rest.
inline constexpr std::array<std::string_view, 7> kHamiAskKeys = {
    "nvidia.com/vgpu-mode",
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
    "nvidia.com/numa-bind",
    "nvidia.com/use-gpuuuid",
    "nvidia.com/nouse-gpuuuid",
    "nvidia.com/mig-profile-preference"};

inline constexpr std::array<std::string_view, 2> kHamiPolicyKeys = {
    "hami.io/gpu-scheduler-policy", "hami.io/node-scheduler-policy"};

inline constexpr VgpuWords kHamiWords = {"hami", "nvidia.com/gpu", kHamiMemoryResource,
                                         kHamiMemoryPercentResource, kHamiCoresResource};

// Makes shares of the parts of GPUs that are not to be MIG devices. Error: kInvalidArgument.
Status FindHamiShares(wire::PodParts& parts);

// The one need of all the MIG devices; nothing where the pod says nothing of them in HAMi's words,
// or asks for no GPUs. gives_devices: Berth gives those of HAMi's agent. Error: kInvalidArgument
// with annotation or resource.
Result<std::optional<MigWant>> ReadHamiAsk(const wire::PodParts& parts, bool gives_devices);

// For a pod with MIG devices. Error: kInvalidArgument with an annotation that names GPUs.
Status RefuseMigUuids(const wire::PodParts& parts);

// Reads the policies, the types, the UUIDs and numa-bind. Error: as ListIn.
Status ReadHamiChoices(const wire::PodParts& parts, RequestShape& shape);

// The links of a node's GPUs as HAMi's device plugin publishes them.
//
//   hami.io/node-nvidia-score     [{"uuid":"GPU-a","score":{"GPU-b":1800,"GPU-c":20}}, ...]
//   hami.io/node-nvidia-register  [{"id":"GPU-a","index":1,"numa":1,...}, ...]; an index and a NUMA
//                                 node of 0 are left out
//
// The scores are those of topology/links/wiring.h; 0 for a pair that HAMi could not
// score. They come in no order, so the register has to say which GPU has which index. (HAMi at
// 3be7525, pkg/device/nvidia/calculate_score.go.)

inline constexpr std::string_view kHamiScoreAnnotation = "hami.io/node-nvidia-score";
inline constexpr std::string_view kHamiRegisterAnnotation = "hami.io/node-nvidia-register";

struct HamiLinks {
  LinkMatrix matrix;
  std::vector<std::string> uuids;  // by index
};

// The text of the one annotation and the JSON of the other. Error: kInvalidArgument with the path
// in the scores, or "hami.io/node-nvidia-register" and the path in it.
Result<HamiLinks> ParseHamiLinks(std::string_view scores, const wire::Json& registered);

// gives_devices: Berth gives the MIG devices of HAMi's plugin, in place of HAMi's scheduler.
std::unique_ptr<const wire::Dialect> MakeHami(bool gives_devices);

}  // namespace berth::dialects
