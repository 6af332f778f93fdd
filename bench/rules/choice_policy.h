// SPDX-License-Identifier: Apache-2.0
//
// The policies that can choose a set of GPUs of one machine: Berth's own, and those of NVIDIA's
// device plugin and HAMi, for comparison.
//
//   berth               set_table.h where the tenants are known, else set_table.h
//   first-fit           the required GPUs, then the lowest indices
//   nvidia-simple       the same
//   nvidia-best-effort  go-gpuallocator at 876e7b7, besteffort_policy.go: the partition of all free
//                       GPUs into sets of this size with the highest total score, and the best set
//                       of it; exact for up to kMaxPartitionGpus free GPUs, else refused
//   nvidia-static-*     go-gpuallocator's fixed sets of a DGX-1 (Pascal, Volta) and a DGX-2
//   hami-topology       HAMi at 4707fb0: one GPU: the lowest score to the other free ones; several:
//                       the highest score; refused above kMaxPartitionGpus free GPUs
//
// NVIDIA and HAMi score pairs (topology/links/wiring.h). The first best wins a tie.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/links/link_matrix.h"
#include "topology/links/wiring.h"

namespace berth {
class WiringSets;
}

namespace berth::replay {

enum class ChoicePolicy {
  kBerth,
  kFirstFit,
  kNvidiaBestEffort,
  kNvidiaSimple,
  kNvidiaStaticDgx1Pascal,
  kNvidiaStaticDgx1Volta,
  kNvidiaStaticDgx2Volta,
  kHamiTopology,
};

inline constexpr int kMaxPartitionGpus = 16;

struct ChoicePolicyName {
  std::string_view name;
  ChoicePolicy policy;
};
std::span<const ChoicePolicyName> ChoicePolicies();

// Error: kInvalidArgument "want berth, first-fit, ..., got TEXT".
Result<ChoicePolicy> ParseChoicePolicy(std::string_view name);

struct ChoiceRequest {
  GpuMask free = 0;
  GpuMask required = 0;
  int size = 1;
  std::vector<GpuMask> tenants = {};  // who holds GPUs that are not free; empty = not known
};

struct Choice {
  GpuMask gpus = 0;    // 0: none
  std::string reason;  // why none
};

// `sets` are those of the matrix's wiring; only kBerth uses them, and the tenants. Requires: free
// and required are sets of the matrix's GPUs.
Choice ChooseGpus(const LinkMatrix& matrix, const WiringSets& sets, ChoicePolicy policy,
                  const ChoiceRequest& request);

}  // namespace berth::replay
