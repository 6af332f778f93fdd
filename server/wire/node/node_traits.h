// SPDX-License-Identifier: Apache-2.0
//
// What sort of node a node is: its traits (NodeSpec::traits), by name, and what a GPU of it costs.
//
//   rdma       it offers RDMA devices (rdma/..., vpc.amazonaws.com/efa), Node Feature Discovery
//              says that it is capable of RDMA, or its machine type has NICs for its GPUs
//   nvlink     two of its GPUs are linked by NVLink
//   nvswitch   each of its GPUs is, with every other one, by more links than a GPU has
//   nvme       local NVMe, by its machine type or a label of the cloud
//   spot       the cloud may take it away at any time (SpotLabels)
//   leaving    the cloud has announced that it takes the node away, moves or restarts it: AKS' node
//              condition VMEventScheduled, taints of GKE, of AKS' node auto-drain and of the AWS
//              node termination handler
//   mig        some of its GPUs are partitioned
//   shared     its GPUs have several users each, or an agent gives parts of them
//   family=F   of its machine type: family=ND, family=p5, family=a3, family=BM.GPU.H100
//   image=V    the version of its image, by AKS' label: image=AKSUbuntu-2204-202511.20.0
//
// And those of the configuration (traits). The price is that of the label nodeLabels.pricePerHour,
// else that of its machine type, by the number of its GPUs.
//
// Immutable: any thread may ask.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/values/node_constraints.h"
#include "config/config.h"
#include "topology/machine_types.h"

namespace berth::wire {

class NodeTraits {
 public:
  // Requires: Validate(config). types: those of the configuration.
  NodeTraits(const Config& config, std::shared_ptr<const MachineTypes> types);

  // Whether a trait depends on a node's having some of the resource.
  [[nodiscard]] bool Reads(std::string_view resource) const;

  // Sets traits and price of a node that has been read otherwise; traits that it has stay.
  // resources: those of Reads that it has. Returns what could not be read; empty: nothing.
  std::string AddTo(NodeSpec& spec, std::span<const std::string> resources) const;

 private:
  struct OwnTrait {
    std::string name;
    LabelSelector labels;
    std::string resource;  // empty: whatever it offers
  };

  std::vector<OwnTrait> own_;
  std::string price_label_;
  std::shared_ptr<const MachineTypes> types_;
};

// Whether a condition of the node, which is True, makes it kTraitLeaving.
bool SaysThatItLeaves(std::string_view condition);

// "ND" of "Standard_ND96isr_H100_v5", "p5" of "p5.48xlarge", "a3" of "a3-highgpu-8g", "BM.GPU.H100"
// of "BM.GPU.H100.8"; of a name without such parts the whole name.
std::string_view MachineFamily(std::string_view type);

// NodeHold: the annotations by which node autoscalers leave a node alone, and which of them are
// Berth's. Berth sets those that nobody has set, and names them in an annotation of its own.

inline constexpr std::array<std::string_view, 2> kHoldKeys = {
    "cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt"};
// "KEY,KEY" of those above.
inline constexpr std::string_view kHoldMark = "berth.dev/holds-node";

// Texts of a node's annotations, as the API server has them; "": it has none.
struct NodeHold {
  std::string mark = {};
  std::array<std::string, kHoldKeys.size()> texts = {};  // by kHoldKeys

  // Takes the annotation, if it is one of these.
  void Take(std::string_view key, std::string_view text);
  [[nodiscard]] bool empty() const { return *this == NodeHold(); }
  friend bool operator==(const NodeHold&, const NodeHold&) = default;
};

// The merge patch of the node by which Berth holds it / holds it no longer; "": nothing is to be
// done. A text that somebody has changed since is not Berth's any more, and stays.
std::string EncodeHold(const NodeHold& now, bool hold);

}  // namespace berth::wire
