// SPDX-License-Identifier: Apache-2.0
//
// SetRater: how good a set of a node's devices is for the claims of a pod, by the order that
// claim_choice.h gives. A pure function of what it is made of, which has to live longer.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cluster/values/pod_request.h"
#include "scoring/claims/device_search.h"
#include "topology/gpu_mask.h"

namespace berth {

struct ClaimNode;
struct NodeQuestion;
struct OfferedGpu;

class SetRater {
 public:
  // gpus: see ChooseForClaims.
  SetRater(const ClaimNode& node, const NodeQuestion& question, const RequestShape* gpus);

  [[nodiscard]] SetRating Rate(std::span<const PickedDevice> set) const;
  // To compare it with sets of other nodes: there is one on each that the DevicePicker takes.
  [[nodiscard]] SetRating RateAmongNodes(std::span<const PickedDevice> set) const;

  // Whether no node can have a better set but for its PCIe roots: whole devices, all that are free
  // of one NUMA group, with the best links.
  [[nodiscard]] bool IsIdeal(std::span<const PickedDevice> set, const SetRating& rating) const;

 private:
  // What is known of a device of the question.
  struct Facts {
    int gpu = -1;                     // of the node; -1 = unknown
    int numa = -1, root = -1;         // as numbers of their own; -1 = not said
    const OfferedGpu* cut = nullptr;  // the GPU that it is a MIG device of
    int placement = 0;
  };
  struct Loss {
    std::int64_t millionths = 0;
    std::int64_t free_units = 0;
  };

  // What the DevicePicker takes of the GPUs that suit some request; 0: nothing, or that is not
  // known.
  [[nodiscard]] GpuMask PickFor(const RequestShape& gpus, const NodeQuestion& question) const;
  [[nodiscard]] GpuMask GpusOf(std::span<const PickedDevice> set) const;
  void FindMig(const std::string& pool, const std::string& device, Facts& facts) const;
  [[nodiscard]] Loss LossOf(std::span<const PickedDevice> set) const;
  // Both of the devices of one pod, summed over the pods.
  [[nodiscard]] std::int64_t LinkDeficit(std::span<const PickedDevice> set) const;
  [[nodiscard]] std::int64_t Spread(std::span<const PickedDevice> set) const;
  [[nodiscard]] int OwnerOf(const PickedDevice& picked) const {
    return owners_.empty() ? 0 : owners_[static_cast<std::size_t>(picked.of.claim)];
  }
  [[nodiscard]] std::int64_t Broken(std::span<const PickedDevice> set) const;

  const ClaimNode& node_;
  const std::vector<int>& owners_;  // by claim
  std::vector<Facts> facts_;        // by device of the question
  GpuMask picked_ = 0;
  std::map<int, std::int64_t> free_;                      // whole devices, by NUMA group
  std::map<const OfferedGpu*, std::uint64_t> taken_mig_;  // placements
};

}  // namespace berth
