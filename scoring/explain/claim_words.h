// SPDX-License-Identifier: Apache-2.0
//
// ClaimWords: what the ResourceClaims of a pod ask for, and which nodes have it, for people.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/claims/device_claim.h"
#include "cluster/node/node.h"
#include "scoring/claims/claim_question.h"
#include "scoring/explain/first_line.h"

namespace berth {

// "20Gi of a GPU's memory", "2 GPUs". Requires: they ask for GPUs or parts of them (ClaimRoom).
std::string AskText(std::span<const DeviceClaim> claims);

// What nodes say to the claims of one pod that have no devices yet.
struct ClaimsJudged {
  std::string asks;       // AskText
  std::size_t nodes = 0;  // that there are
  std::size_t fitting = 0;
  std::map<std::string, std::size_t> against = {};  // that have the devices, by what is against
  // Of the nodes that lack part of a device only, that where most is left.
  std::string nearest = {};
  std::optional<ClaimRoom::Lack> lack = {};
  bool too_long = false;  // not all nodes were looked at
};

// The cure first: "fits none of 3 nodes; ask for 12Gi of memory or less, or wait until claims end;
// it asks for 20Gi of a GPU's memory by claim, and most is left of gpu-0 on n1".
std::vector<LinePart> LineOf(const ClaimsJudged& judged);

// What claims that the pod names hold on the node: "gpu-0 (20Gi of memory), gpu-1"; "": nothing.
std::string ClaimedText(const Node& node, const PodRequest& pod);

// "gpu-0: parts held by claim ml/a (20Gi of memory)": of devices that Berth counts as no GPUs.
std::vector<std::string> PartsHeldOn(const Node& node);

}  // namespace berth
