// SPDX-License-Identifier: Apache-2.0
//
// The annotations of a Node that the agent keeps: what is there, what should be there, and the
// patch between the two.
//
// Who wrote a value is read from managedFields. berth.dev/topology and berth.dev/mig may be written
// by people, who can say what a machine does not know (GPUs that are partitioned when a pod comes,
// links behind a hypervisor): such a value stays. The other keys are the agent's alone.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/facts/node_facts.h"

namespace berth::node {

inline constexpr std::string_view kFieldManager = "berth-node";

// A key of WantedAnnotations: a value, or nullopt = not there. A key that is not in the map stays.
using WantedAnnotations = std::map<std::string, std::optional<std::string>>;

struct NodeAnnotations {
  std::map<std::string, std::string> values;  // of the keys that the agent may write
  std::set<std::string> ours;                 // those of them that the agent wrote last
  bool mig_single = false;                    // label nvidia.com/mig.strategy: single
};

// Of a Node of the API server. Error: kInvalidArgument.
Result<NodeAnnotations> ReadNodeAnnotations(std::string_view node_json);

// The body of a merge patch; nullopt where nothing differs. `kept`: keys with a value of somebody
// else that differs and stays.
std::optional<std::string> AnnotationPatch(const NodeAnnotations& now,
                                           const WantedAnnotations& wanted,
                                           std::vector<std::string>& kept);

// What the parts of the agent say of the node, and the annotations that follow from it.
inline constexpr std::size_t kMostCarried = 64;     // resources that are named
inline constexpr std::size_t kMostUnhealthy = 256;  // devices that are named; more are not

struct WhatIsSaid {
  std::set<std::string> carries;                           // resources
  std::map<std::string, std::set<std::string>> unhealthy;  // by resource: devices
  std::string kubelet;                                     // berth.dev/kubelet; "" = not known
  std::shared_ptr<const NodeFacts> facts = std::make_shared<const NodeFacts>();

  // Of replicas ("GPU-...::3") the device counts. False: nothing has changed.
  bool SetUnhealthy(const std::string& resource, std::set<std::string> ids);
};

// mig_single: the node's MIG devices are given as nvidia.com/gpu, by its labels.
WantedAnnotations Wanted(const WhatIsSaid& says, bool mig_single);

// The policies of a kubelet that decide which GPUs it offers a container, as the annotation
//
//   berth.dev/kubelet: {"topologyManagerPolicy":"single-numa-node",
//                       "topologyManagerScope":"container","cpuManagerPolicy":"static",
//                       "numa":"lifted"}
//
// All fields are optional: what is not there is not known. "numa": "lifted" says that the
// kubelet does not know the NUMA nodes of the devices, so that its Topology Manager does not limit
// the choice: their plugin does not name them, or the agent does not pass them on.

struct KubeletPolicies {
  std::string topology_manager;        // "" = not known
  std::string topology_manager_scope;  // the same
  std::string cpu_manager;             // the same
  friend bool operator==(const KubeletPolicies&, const KubeletPolicies&) = default;
};

// Of what the kubelet answers to GET /configz. Error: kInvalidArgument.
Result<KubeletPolicies> PoliciesOfConfigz(std::string_view json);

// Of the kubelet's configuration file, YAML: the top level's lines "key: word". A key that is not
// there has the kubelet's default ("none", "container", "none"), because the file is all there is;
// flags of the kubelet's command line may say otherwise.
KubeletPolicies PoliciesOfConfigFile(std::string_view yaml);

// The URL of a kubelet as manifests put it together, "https://$(HOST_IP):10250", with the brackets
// that an address of IPv6 needs.
std::string KubeletUrl(const std::string& url);

// "" where nothing is known and nothing is lifted.
std::string KubeletAnnotation(const KubeletPolicies& policies, bool numa_lifted);

}  // namespace berth::node
