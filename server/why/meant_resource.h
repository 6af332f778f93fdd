// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cluster/state/snapshot.h"

namespace berth {

// Of a pod that asks for a resource that no node has: "Berth does not know the resource
// example.com/gpus, did you mean example.com/gpu?", by the words of kube-scheduler ("2 Insufficient
// example.com/gpus") and what the nodes offer. "": no name is that near.
std::string MeantResource(std::string_view scheduler_said, const Snapshot& snapshot);

}  // namespace berth
