// SPDX-License-Identifier: Apache-2.0
//
// NodeReport: what one node has, what is free of it and who holds the rest, for people. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/explain/kept_room.h"
#include "scoring/reason.h"

namespace berth {

// A pod on the node that holds GPUs, parts of them, places or MIG devices.
struct NodeTenant {
  std::string pod;  // "namespace/name"
  std::string uid;
  int priority = 0;
  PodState state = PodState::kBound;
  std::vector<DeviceGrant> grants;  // none of a pod whose GPUs are unknown (`gpus_unknown`)
  std::vector<std::string> mig;     // "1g.5gb at 4 of GPU 2"
  int places = 0;
  // It was bound past Berth, or other pods were given its GPUs: these are assumed.
  bool gpus_unknown = false;
  std::vector<int> places_on = {};  // GPUs; empty: not known
  // Planned for it, where it was given others; else empty.
  PodDevices planned = {};
};

struct GpuFacts {
  int index = 0;
  std::string uuid;  // empty = not known
  GpuFree free;
  std::int64_t memory_mib = 0;  // in all; 0 = not known
  bool open = true;             // false: unhealthy, or closed for one that is missing
  bool healthy = true;
  std::string model = {};            // where the node's GPUs are of several
  std::vector<std::string> held_by;  // "namespace/name" of pods; "claim namespace/name"
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
  std::string gpu_model;
  bool ready = true;
  bool refuses_gpu_pods = false;               // NodeSpec
  std::vector<std::string> refused_asks = {};  // the same, one text each
  std::string gpu_condition = {};              // the same
  std::string named_gpus_condition = {};
  std::string gpu_contradiction = {};     // the same
  int missing = 0;                        // of `gpus`, so many are unhealthy, not known which
  std::vector<int> unwell = {};           // GPUs of places (GpuPlaces)
  bool carries_out = false;               // NodeSpec
  bool by_claims = false;                 // kube-scheduler gives its GPUs (NodeSpec::by_claims)
  TopologyManager topology_manager = {};  // the same
  // "550.54.15" and "12.4", the newest CUDA that it runs; empty: the node does not say it.
  std::string driver = {}, cuda = {};
  std::vector<std::string> traits = {};
  double gpu_price = 0;
  std::int64_t cpu_milli = 0, free_cpu_milli = 0;
  std::int64_t memory_bytes = 0, free_memory_bytes = 0;
  // Empty: not tracked (NodeSpec).
  std::optional<std::int64_t> ephemeral_bytes, free_ephemeral_bytes;
  std::vector<std::string> taints;  // "key=value:NoSchedule"
  std::vector<GpuFacts> gpus;
  int idle_gpus = 0;  // that can be given whole now
  int places = 0, free_places = 0;
  std::vector<int> places_on = {};  // taken ones that are known to be on each GPU, by index
  int mig_gpus = 0;                 // partitioned ones, beside `gpus`
  bool mig_cut_at_will = false;
  std::vector<MigFree> mig;         // profiles with free devices
  std::vector<NodeTenant> tenants;  // by name
  int pods_on_other_gpus = 0;       // of these, than planned
  // As the node has them; what is not known is not known here either.
  GpuLinks links = {};
  NodeMig mig_spec = {};
  MigUse mig_use = {};
  std::vector<KeptFor> kept_for = {};  // ReportOf, which knows the node alone, leaves it empty
};

NodeReport ReportOf(const Node& node);

// "key=value:NoSchedule", "key:NoExecute".
std::string TextOf(const Taint& taint);

// "16", "0.5": of thousandths, without needless zeros.
std::string CpuText(std::int64_t milli);
// "12.5 GiB", "200 MiB".
std::string MemoryText(std::int64_t bytes);
// "2 GPUs", "1 GPU", "a share of 300 thousandths of a GPU", "2 MIG devices 1g.5gb"; "no GPU".
std::string AskText(const GpuAsk& ask);
// "6 GPUs, CPU 8 and memory 64 GiB or more".
std::string AskText(const RefusedAsk& ask);
// "2 pods", "1 pod".
std::string CountText(std::int64_t count, const std::string& what);

// "GPU 3", "GPU 3 (300 thousandths)"; by the UUID where the index is not known.
std::string TextOf(const DeviceGrant& grant);

// It holds GPUs, and nobody knows which, or that they are replicas.
bool HasUnknownGpus(const PodRecord& record);

// "2 GPU replicas on GPU 0, GPU 3"; where `on` is empty their number alone.
std::string TextOfPlaces(std::int64_t places, std::span<const int> on);

// What the node has of what decided against the pod, in numbers: "4 of 8 GPUs idle, needs 4 linked
// (largest linked set 2)". Where no number decided, the text of the reason.
std::string LackText(const Node& node, const PodRequest& pod, Reason reason);

}  // namespace berth
