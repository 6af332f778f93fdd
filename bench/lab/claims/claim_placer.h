// SPDX-License-Identifier: Apache-2.0
//
// ClaimPlacer: pods of a trace that ask for whole GPUs, as claims of DRA: who chooses node and
// devices.
//
//   first-fit  kube-scheduler alone: the node by its own scores, the first devices that fit
//   nodes      Berth's policy chooses the node, kube-scheduler takes the first devices that fit
//   devices    Berth chooses both (dra.chooseDevices)
//
// The GPUs of a machine are in two NUMA nodes. one_numa: pods of 2 to 4 GPUs want them in one
// (matchAttribute).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/replay/policy.h"
#include "bench/replay/replay.h"
#include "bench/rules/kube_choice.h"
#include "cluster/claims/device_offers.h"
#include "cluster/state/cluster_state.h"
#include "scoring/claims/claim_choice.h"
#include "scoring/engine/engine.h"

namespace berth::replay {

enum class ClaimWay { kFirstFit, kNodes, kDevices };

class ClaimPlacer final : public Placer {
 public:
  struct Options {
    ClaimWay way = ClaimWay::kDevices;
    bool one_numa = false;
    std::uint64_t seed = 0;
  };
  // Error: as Engine::Create.
  static Result<std::unique_ptr<ClaimPlacer>> Create(const ReplayPolicy& policy,
                                                     const std::vector<NodeSpec>& nodes,
                                                     const Options& options);

  // Requires: the pod asks for whole GPUs.
  Result<std::optional<Placement>> Place(const PodRequest& pod) override;

 private:
  struct Chosen {
    NodeIndex node = 0;
    GpuMask gpus = 0;
  };

  ClaimPlacer(const std::vector<NodeSpec>& nodes, const Options& options,
              std::shared_ptr<LearnedMix> mix, std::shared_ptr<Engine> engine);

  [[nodiscard]] ClaimQuestion QuestionOf(int count) const;
  [[nodiscard]] std::optional<Chosen> ChooseDevices(const std::shared_ptr<const Snapshot>& snapshot,
                                                    const RequestShape& shape,
                                                    const std::vector<NodeIndex>& fitting);
  [[nodiscard]] std::optional<Chosen> ChooseNode(const std::shared_ptr<const Snapshot>& snapshot,
                                                 const RequestShape& shape,
                                                 std::vector<NodeIndex> fitting);

  const Options options_;
  const std::shared_ptr<LearnedMix> mix_;
  const std::shared_ptr<Engine> engine_;
  KubeChoice scheduler_;
  ClusterState state_;
  DeviceOffers offers_;
  std::vector<NodeIndex> all_;
};

}  // namespace berth::replay
