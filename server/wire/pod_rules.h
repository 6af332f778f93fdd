// SPDX-License-Identifier: Apache-2.0
//
// PodRules: how Berth reads what a pod asks for - resource names, annotations, and how the asks of
// containers add up to one RequestShape. The rules, free of JSON; pod_json.h finds the fields.
//
// Containers add up as in Kubernetes (k8s.io/component-helpers resource.PodRequests): the larger of
// "all containers and sidecars together" and "any init container with the sidecars started before
// it", plus the pod's overhead; CPU and memory given for the pod as a whole replace that sum. A pod
// asks for whole GPUs of one resource, for a share of one GPU, or for MIG devices (pod_mig.h);
// shares of its containers are parts of the same GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/device_classes.h"
#include "cluster/labels.h"
#include "cluster/node_constraints.h"
#include "cluster/pod_groups.h"
#include "cluster/pod_request.h"
#include "config/config.h"
#include "server/wire/pod_mig.h"
#include "topology/domains/topology_levels.h"

namespace berth::wire {

// What one container (or the overhead, or the pod as a whole) asks for.
struct ResourceAsk {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t gpus = 0;
  std::int64_t share_milli = 0;
  std::int64_t share_bytes = 0;
  MigCounts mig = {};
  std::int64_t hami_memory_mib = 0;  // nvidia.com/gpumem: of each GPU (hami_ask.h)
  bool hami_memory_percent = false;  // nvidia.com/gpumem-percentage is there
  // The resource of HAMi's by which less than a GPU is asked for; empty = none.
  std::string_view hami_share = {};
  // By which resource of the rules the GPUs are asked for, and another one; empty = none.
  std::string_view gpu_resource = {};
  std::string_view other_gpu_resource = {};

  ResourceAsk& operator+=(const ResourceAsk& other);
  // The larger of each.
  void Raise(const ResourceAsk& other);
  [[nodiscard]] bool wants_gpu() const { return gpus > 0 || wants_share() || !mig.empty(); }
  [[nodiscard]] bool wants_share() const { return share_milli > 0 || share_bytes > 0; }

 private:
  void AddWords(const ResourceAsk& other);
};

enum class ContainerKind { kInit, kSidecar, kMain };

struct ContainerSpec {
  std::string name;
  ContainerKind kind = ContainerKind::kMain;
  ResourceAsk ask;
};

// The parts of a pod that matter here, as decoded.
struct PodParts {
  PodId id;
  std::vector<ContainerSpec>
      containers;  // init containers first, each kind in the order of the spec
  ResourceAsk overhead;
  std::optional<std::int64_t> pod_cpu_milli;  // spec.resources.requests
  std::optional<std::int64_t> pod_memory_bytes;
  // Those of berth.dev/, those that tell of groups (pod_group.h), what pods ask of HAMi
  // (hami_ask.h), and what HAMi gave (hami_mig.h).
  std::map<std::string, std::string, std::less<>> annotations;
  std::string problem;  // the first thing that could not be read; empty = none
  int priority = 0;
  bool may_preempt = true;
  std::string pod_group;  // spec.schedulingGroup.podGroupName
  Labels labels;
  NodeConstraints constraints;
};

class PodRules {
 public:
  // levels: that pods can ask for. groups: tell what pods do not say of theirs. classes: what
  // resources stand for that DRA gives out. Both outlive the object; nullptr = nobody tells.
  explicit PodRules(const std::vector<ResourceRule>& resources, TopologyLevels levels = {},
                    const PodGroups* groups = nullptr, const DeviceClasses* classes = nullptr);

  [[nodiscard]] const TopologyLevels& levels() const { return levels_; }

  // Adds the quantity of that resource to the ask; names without a meaning are ignored, and those
  // of DeviceClasses of which the profile cannot be said: kube-scheduler alone places them. Error:
  // kInvalidArgument when the text is not a quantity or is negative, and for nvidia.com/mig- with
  // something behind it that is no profile.
  Status Add(std::string_view resource, std::string_view quantity, ResourceAsk& ask) const;

  // A pod that cannot be placed anywhere comes back with its refusal set.
  [[nodiscard]] PodRequest ToRequest(PodParts parts) const;

 private:
  // The group, and near to whom; a problem becomes the refusal where there is none yet.
  void ReadGroup(const PodParts& parts, PodRequest& request) const;

  struct Rule {
    std::string name;
    ResourceMeaning meaning;
    std::int64_t factor;
  };
  std::vector<Rule> rules_;
  bool several_gpu_resources_ = false;  // by which whole GPUs can be asked for
  TopologyLevels levels_;
  const PodGroups* groups_;
  const DeviceClasses* classes_;
};

}  // namespace berth::wire
