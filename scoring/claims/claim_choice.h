// SPDX-License-Identifier: Apache-2.0
//
// ClaimChoice: the node and the devices that the claims of a pod should get. All claims get theirs
// on one node, one of those that the policy ranks first among those that have them. Of the sets
// that kube-scheduler's allocator could take there (device_search.h) the best, by precedence:
//
//   MIG     the least loss of a GPU's worth (mig/mig_tables.h), as for the pods to which Berth
//           gives MIG devices itself; a part of a GPU that several claims may share costs all of
//           the GPU if nobody has a part of it yet, else nothing
//   picked  of whole GPUs whose links are known the set that the DevicePicker takes, as on a node
//           of the device plugin: neighbours, NICs, links, what is left to others. It may be none
//           that the claims allow, then what follows decides. Between nodes it does not count.
//   links   the best quality relative to the best set of that size in the machine, where the links
//           of the node are known and these are several of its GPUs (GpuLinks::quality)
//   near    the fewest NUMA groups and PCIe roots, as the attributes numaNode and
//           resource.kubernetes.io/pcieRoot say; of MIG devices the GPU with the fewest free units,
//           of parts the one of whose scarcest capacity least is left
//   whole   the least broken: free^2 - (free - taken)^2, summed over the NUMA groups
//
// Nodes that are alike (NodeDevices::likeness) and whose links are equal have one answer, and one
// of them is looked at, unless a selector asks for what tells devices from each other, or pods are
// there that the pod is to be near or far from.
//
// Of equal ones it is the node with the fewest free devices, then the first by name; on a node the
// first set.
// Nodes with the fewest free devices are looked at first, until kMostChoiceSteps. Pure but for the
// costs that the question counts.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/claims/device_offers.h"
#include "cluster/node/node.h"
#include "scoring/claims/claim_question.h"

namespace berth {

// A node on which the pod fits.
struct ClaimNode {
  std::string_view name;
  const NodeDevices* devices = nullptr;
  const Node* node = nullptr;        // its GPUs and links; nullptr = unknown
  const OfferedGpus* mig = nullptr;  // what its MIG devices are; nullptr = it has none
  int rank = 0;                      // by the policy: 0 is the best
};

struct ChosenDevice {
  OptionOf of;
  std::string driver;
  std::string pool;
  std::string device;
  std::optional<CapacityUses> part = {};  // of one that several claims may share; else all of it
};

struct ClaimChoice {
  // kFound; kNone: no node has the devices. kError, kUnknown: no node is known to have them, and
  // there is one that may.
  SearchEnd end = SearchEnd::kNone;
  std::size_t node = 0;  // of the nodes given
  std::vector<ChosenDevice> devices = {};
};

// For one pod, on all nodes: after so many the rest is not looked at.
inline constexpr int kMostChoiceSteps = 1'000'000;

// gpus: what the claims ask for, as a pod that asks for so many whole GPUs of kOfClaims
// (devices/device_picker.h); nullptr: they do not ask for whole GPUs alone, or several pods ask.
ClaimChoice ChooseForClaims(ClaimQuestion& question, std::span<const ClaimNode> nodes,
                            const RequestShape* gpus = nullptr);

}  // namespace berth
