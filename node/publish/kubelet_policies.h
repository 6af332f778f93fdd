// SPDX-License-Identifier: Apache-2.0
//
// The policies of a kubelet that decide which GPUs it offers a container, as the annotation
//
//   berth.dev/kubelet: {"topologyManagerPolicy":"single-numa-node",
//                       "topologyManagerScope":"container","cpuManagerPolicy":"static",
//                       "numa":"lifted"}
//
// All fields are optional: what is not there is not known. "numa": "lifted" says that the
// kubelet does not know the NUMA nodes of the devices, so that its Topology Manager does not limit
// the choice: their plugin does not name them, or the agent does not pass them on.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::node {

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
