// SPDX-License-Identifier: Apache-2.0
//
// NodeReport: what one node has, what is free of it and who holds the rest, for people. A value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"
#include "cluster/node/node.h"
#include "cluster/node/slice_gpus.h"
#include "cluster/values/pod_request.h"
#include "scoring/explain/kept_room.h"
#include "scoring/reason.h"

namespace berth {

// Devices that are no GPUs for certain.
bool IsNetwork(std::string_view resource);

// What the label of a GPU operator says of an upgrade of the node's driver.
struct DriverUpgrade {
  std::string text = {};  // empty: none is under way
  bool failed = false;
  friend auto operator<=>(const DriverUpgrade&, const DriverUpgrade&) = default;
};
DriverUpgrade DriverUpgradeOf(const NodeSpec& spec);

// A pod on the node that holds GPUs, parts of them, places or MIG devices.
struct NodeTenant {
  std::shared_ptr<const PodRecord> record;
  std::vector<DeviceGrant> grants;  // none of a pod whose GPUs are unknown
  // It was bound past Berth, or other pods were given its GPUs: these are assumed.
  bool gpus_unknown = false;

  [[nodiscard]] std::string name() const { return record->pod.id.full_name(); }
  [[nodiscard]] int places() const {
    const Placement& has = record->placement;
    return std::max(has.places, static_cast<int>(std::ssize(has.places_on)));
  }
  // Planned for it, where it was given others; else nullptr.
  [[nodiscard]] const PodDevices* planned() const {
    return record->on_other_gpus() ? record->planned.get() : nullptr;
  }
};

struct GpuFacts {
  std::vector<std::string> held_by = {};  // "namespace/name" of pods; "claim namespace/name"
};

// A profile that can be had on a partitioned node.
struct MigFree {
  std::string profile;
  // Devices of it that are free. Where they are cut at will: how many of this profile alone could
  // be cut now.
  int free = 0;
};

struct NodeReport {
  std::string name;
  Node node;                                   // at that moment
  std::vector<std::string> refused_asks = {};  // NodeSpec, one text each
  // "550.54.15" and "12.4", the newest CUDA that it runs; empty: the node does not say it.
  std::string driver = {}, cuda = {};
  // "driver 535.54.15, other nodes with this GPU model have 550.90.7"; ReportOf leaves it empty.
  std::string odd_driver = {};
  std::vector<std::string> taints = {};  // "key=value:NoSchedule"
  std::vector<GpuFacts> gpus = {};       // one of each of the node's
  int idle_gpus = 0;                     // that can be given whole now
  int missing = 0;                       // of `gpus`, so many are unhealthy, not known which
  int free_places = 0;
  int mig_gpus = 0;                      // partitioned ones, beside `gpus`
  std::vector<MigFree> mig = {};         // profiles with free devices
  std::vector<NodeTenant> tenants = {};  // by name
  int pods_on_other_gpus = 0;            // of these, than planned
  std::vector<KeptFor> kept_for = {};    // ReportOf, which knows the node alone, leaves it empty

  [[nodiscard]] const NodeSpec& spec() const { return node.spec(); }
};

NodeReport ReportOf(const Node& node);

// "key=value:NoSchedule", "key:NoExecute".
std::string TextOf(const Taint& taint);

// "16", "0.5": of thousandths, without needless zeros.
std::string CpuText(std::int64_t milli);
// "12.5 GiB", "200 MiB".
std::string MemoryText(std::int64_t bytes);
// "2 GPUs", "1 GPU", "a share of 300 thousandths of a GPU", "2 MIG devices 1g.5gb"; "no GPU".
// in_units: of memory, of its agent, and not MiB.
std::string AskText(const GpuAsk& ask, bool in_units = false);
inline std::string AskText(const RequestShape& shape, bool in_units = false) {
  if (!shape.may_divide()) return AskText(shape.gpus, in_units);
  const std::vector<GpuStep>& steps = shape.gpu_steps;
  if (std::ranges::count(steps, steps.front()) == std::ssize(steps)) {
    return AskText(steps.front().share, in_units) + " in each of " +
           CountText(steps.size(), "container");
  }
  return Join(steps, " and ",
              [in_units](const GpuStep& step) { return AskText(step.share, in_units); });
}
// "6 GPUs, CPU 8 and memory 64 GiB or more".
std::string AskText(const RefusedAsk& ask);

// "GPU 3", "GPU 3 (300 thousandths)"; by the UUID where the index is not known.
std::string TextOf(const DeviceGrant& grant);

// Its device plugin is gone, or calls all of its GPUs unhealthy. While MIG devices are changed none
// runs.
inline bool OffersNoneOfItsGpus(const NodeSpec& spec) {
  const bool has_mig = spec.mig.known() && (!spec.mig->gpus.empty() || !spec.mig->shared.empty());
  return spec.missing > 0 && !OffersOwnGpus(spec) && !has_mig &&
         spec.mig_trouble() == MigTrouble::kNone;
}

// It holds GPUs, and nobody knows which, or that they are replicas.
bool HasUnknownGpus(const PodRecord& record);

// "2 GPU replicas on GPU 0, GPU 3"; where `on` is empty their number alone.
std::string TextOfPlaces(std::int64_t places, std::span<const int> on);

// "GPU 0, GPU 3", "1g.5gb at 4 of GPU 2", or so many replicas; "": none.
std::string ListDevices(const PodDevices& devices, std::int64_t replicas);

// What the node has of what decided against the pod, in numbers: "4 of 8 GPUs idle, needs 4 linked
// (largest linked set 2)". Where no number decided, the text of the reason.
std::string LackText(const Node& node, const PodRequest& pod, Reason reason);

}  // namespace berth
