// SPDX-License-Identifier: Apache-2.0
//
// What the API server does with the resources of a pod before any scheduler sees it:
// validation refuses some, and the admission plugin ExtendedResourceToleration lets a pod tolerate
// taints named after the extended resources that it asks for.
// (kubernetes/kubernetes, pkg/apis/core/validation;
// plugin/pkg/admission/extendedresourcetoleration)
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cluster/state/snapshot.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {

// Why the API server refuses the pod, with the field; "": for nothing that is looked at here. pod:
// a Pod, or the template of one.
std::string RefusedByApiServer(const Json& pod);

// The extended resources that its containers ask for, each once, at most kMostOtherResources.
std::vector<std::string> ExtendedResourcesOf(const Json& pod);

// Whether the plugin runs there, by the labels of the nodes: GKE, AKS and EKS run it.
bool RunsResourceToleration(const Snapshot& snapshot);

// NotJudged: what of a pod kube-scheduler alone judges and Berth does not look at, by name:
//
//   volume claim data, host port 80, spread over zone, pod affinity over rack, ResourceClaim nic

// Of one pod; of more the last one says how many.
inline constexpr std::size_t kMostNotJudged = 8;
inline constexpr std::size_t kMostNotJudgedBytes = 100;  // of each

// pod: a Pod, or the template of one. Of fields of other types nothing is said.
std::vector<std::string> NotJudged(const Json& pod);

// Adds one more, within the bounds.
void AddNotJudged(std::string what, std::vector<std::string>& all);

}  // namespace berth::wire
