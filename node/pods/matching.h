// SPDX-License-Identifier: Apache-2.0
//
// Which pod the kubelet asks for. Its question names none, but at that moment its own list has the
// pod in question as the only one that asks for the resource and has none of it: it adds one pod to
// its list, admits it, and goes on to the next. Pure functions.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "node/interposer/ports.h"
#include "node/kubelet/pod_resources.h"
#include "node/pods/own_pods.h"

namespace berth::node {

// A container that is being given devices.
struct Turn {
  OwnPodPtr pod;
  std::string container;
};

// Whether an init container has had its devices: the kubelet does not list them.
using WasServed = std::function<bool(const OwnPod& pod, const std::string& container)>;

// What the kubelet's list and the own pods say together.
struct Matched {
  std::vector<Turn> candidates;  // by creation time of the pods, then by name
  // Pods without devices that the list has and the own pods do not have (yet): "namespace/name".
  std::vector<std::string> unknown;
};

// The containers whose turn it is with exactly `size` of the resource. `must` not empty: an init
// container has had its devices. `listed` nullptr: the kubelet's list is not known, and every pod
// that is not over counts.
Matched MatchPods(const PreferredQuestion& question, const OwnPods::Pods& own,
                  const std::vector<ListedPod>* listed, const WasServed& was_served);

// The own pods that ask for the resource and are not known to have it: their status does not show
// it, and not all of their containers were served.
std::vector<OwnPodPtr> Waiting(const std::string& resource, const OwnPods::Pods& own,
                               const WasServed& was_served);

// The turn of a pod that is the only one that waits. nullopt: it is not sure that the kubelet means
// it, or its turn is one with another number.
//
// The kubelet gets the pods of its node in the order in which the own watch brings them, and admits
// them in that order. So a pod before which all have been served is the next one, where both have
// come anew: after the kubelet began to ask us (question.since) and not long before `now`. A pod
// that waits for longer was refused perhaps, or has its devices from somebody else.
std::optional<Turn> TurnOfNext(const PreferredQuestion& question, const OwnPodPtr& pod, Instant now,
                               const WasServed& was_served);

// The devices of the resource that are planned for own pods that still wait for them.
std::vector<std::string> PlannedForOthers(const PreferredQuestion& question,
                                          const OwnPods::Pods& own,
                                          const std::vector<ListedPod>& listed,
                                          const NodeFacts& facts);

// The devices on which pods have shares that do not ask for the resource.
std::vector<std::string> Shared(const PreferredQuestion& question, const OwnPods::Pods& own,
                                const NodeFacts& facts);

}  // namespace berth::node
