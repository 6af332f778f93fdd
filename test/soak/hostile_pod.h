// SPDX-License-Identifier: Apache-2.0
//
// HostilePod: pods of a tenant who writes whatever a pod can say: a node by its name, GPUs in the
// words of every ecosystem, the record of a decision that was never made.
#pragma once

#include <string>

#include "base/random.h"
#include "server/wire/pod/pod_rules.h"
#include "test/soak/soak_api.h"

namespace berth::test {

// Bound past Berth to that node. lies: its records may claim more or less than it asks for.
SoakPod HostilePod(Random& random, const std::string& name, const std::string& node, bool lies);

// Records of other ecosystems on a pod that Berth may have bound; never berth.dev/devices.
std::map<std::string, std::string> ForeignRecords(Random& random, const SoakPod& pod, bool lies);

// Whether these rules hold foreign records to what the pod asks for. Otherwise such lies move the
// books as their authors please, and a run with them proves nothing.
bool HoldsRecordsToTheRequest(const wire::PodRules& rules);

}  // namespace berth::test
