// SPDX-License-Identifier: Apache-2.0
//
// PodRules: how Berth reads what a pod asks for - resource names, annotations, and how the asks of
// containers add up to one RequestShape. The rules, free of JSON; pod_json.h finds the fields.
//
// Containers add up as in Kubernetes (k8s.io/component-helpers resource.PodRequests): the larger of
// "all containers and sidecars together" and "any init container with the sidecars started before
// it", plus the pod's overhead; CPU and memory given for the pod as a whole replace that sum. A pod
// asks for whole GPUs of one resource, for a share of a GPU or of several, or for MIG devices
// (pod_parts.h); shares of its containers are parts of the same GPUs.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/claims/device_claim.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/values/pod_request.h"
#include "config/config.h"
#include "server/wire/pod/dialect.h"
#include "server/wire/pod/pod_needs.h"
#include "server/wire/pod/pod_parts.h"
#include "topology/domains/domain_tree.h"

namespace berth::wire {

class PodRules {
 public:
  // resources: as configured; those of the catalogue count besides (GpuWords). levels: that pods
  // can ask for. groups: what pods do not say about their group. classes: what resources stand for
  // that DRA gives out. Both outlive the object; nullptr = there are none. workloads: the classes
  // of pods.
  PodRules(std::shared_ptr<const Dialects> dialects, const std::vector<ResourceRule>& resources,
           TopologyLevels levels = {}, const PodGroups* groups = nullptr,
           const DeviceClasses* classes = nullptr, WorkloadClasses workloads = {});
  // As the configuration says; requires Validate(config).
  PodRules(std::shared_ptr<const Dialects> dialects, const Config& config,
           const PodGroups* groups = nullptr, const DeviceClasses* classes = nullptr)
      : PodRules(std::move(dialects), config.resources, config.topology_levels, groups, classes,
                 WorkloadClasses(config)) {}

  [[nodiscard]] const TopologyLevels& levels() const { return levels_; }
  [[nodiscard]] const Dialects& dialects() const { return *dialects_; }
  [[nodiscard]] const PodGroups* groups() const { return groups_; }
  [[nodiscard]] const DeviceClasses* classes() const { return classes_; }
  // The same, with other PodGroups, which outlive it.
  [[nodiscard]] PodRules With(const PodGroups& groups) const {
    PodRules rules = *this;
    rules.groups_ = &groups;
    return rules;
  }

  // Takes over other workload classes, from the next pod that is read on; so do its copies.
  void Use(WorkloadClasses workloads) { workloads_->Use(std::move(workloads)); }

  // Adds the quantity of that resource to the ask; names without a meaning are ignored, and those
  // of DeviceClasses without a readable profile: kube-scheduler alone places them. Error:
  // kInvalidArgument when the text is not a quantity or is negative, and where a dialect refuses
  // the resource.
  Status Add(std::string_view resource, std::string_view quantity, ResourceAsk& ask) const;

  // Whether pods ask for whole GPUs by that resource.
  [[nodiscard]] bool CountsGpus(std::string_view resource) const;

  // A pod that cannot be placed anywhere comes back with its refusal set.
  [[nodiscard]] PodRequest ToRequest(PodParts parts) const;

 private:
  // What the annotations ask for. Error: kInvalidArgument with what is wrong.
  Status ReadAnnotations(const PodParts& parts, PodRequest& request) const;
  // The DeviceClass of the resource by which it asks for whole GPUs; empty: there is none.
  [[nodiscard]] std::string ClassOfGpus(const RequestShape& shape) const;
  // The group, and near to whom; a problem becomes the refusal where there is none yet.
  void ReadGroup(const PodParts& parts, PodRequest& request) const;

  std::shared_ptr<const Dialects> dialects_;
  std::shared_ptr<const GpuWords> words_;
  TopologyLevels levels_;
  const PodGroups* groups_;
  const DeviceClasses* classes_;
  std::shared_ptr<CurrentClasses> workloads_;  // never nullptr; copies share it
};

}  // namespace berth::wire
