// SPDX-License-Identifier: Apache-2.0
//
// ScarcityMarket: prices for goods that pods with special requirements will need - slots of several
// GPUs on one node, GPUs of certain models - near zero while there is plenty of them.
//
// Goods and prices, in GPUs. With N = free GPU of the cluster / mean GPU ask of a pod, the number
// of pods that are still to come before it is full:
//
//   a slot for K > 1 GPUs with the CPU that goes with them, for those classes that the mix asks
//   most for what the empty fleet has:
//     price = K * min(limit, (N * demand / slots)^exponent)
//     demand: slots that a pod of the mix needs in the mean; larger asks that do not need less CPU
//     per GPU count as several
//   room for a large share, of the size (above half a GPU, or a whole one) that pods with one GPU
//   ask most of; where memory is counted (gpu_state.h), also in memory, and both prices are
//   multiplied by what the one is worth:
//     price = share_price * size * min(2, (N * demand / rooms)^8)
//     demand: GPUs that a pod needs in the mean with as much free as that
//   a GPU of a model, for each of the 64 sets of models that classes name most and the model
//   belongs to:
//     price = model_price * min(limit, N * demand / free GPU of the set), the largest of the sets
//     demand: GPU that a pod needs in the mean and can find only within the set
//   slots of every size for pods of a kind that has not come: see market.h
#pragma once

#include <cstdint>
#include <vector>

#include "scoring/waste/fleet.h"
#include "scoring/waste/gpu_state.h"
#include "scoring/waste/market.h"
#include "scoring/waste/request_mix.h"

namespace berth {

class ScarcityMarket final : public Market {
 public:
  // points_per_gpu: of the raw scores that prices are given in. Requires: groups outlives it and is
  // of the same mix.
  ScarcityMarket(const RequestMix& mix, const ModelGroups& groups, const Fleet& fleet,
                 const WasteParameters& parameters, double points_per_gpu,
                 const CardWorth& worth = {});

  // First the free GPU of each model group, in thousandths; then the slots; last those of every
  // size (SlotGpus).
  [[nodiscard]] std::size_t goods() const override { return groups_.size() + slots_.size() + 1; }
  void Supply(const Node& node, std::span<int> amounts) const override;
  void Taken(const Node& node, const RequestShape& shape, const DeviceChoice& choice,
             std::span<int> amounts) const override;
  [[nodiscard]] std::vector<double> Prices(std::span<const std::int64_t> supply) const override;

 private:
  static constexpr std::size_t kMostSlots = 8;  // beside the rooms
  static constexpr std::size_t kMostRooms = 2;
  static constexpr std::size_t kMostModelSets = 64;  // those that most GPUs are asked of
  using Groups = std::vector<std::size_t>;           // of models

  // A slot for several GPUs; or room for a share, with gpus = 1.
  struct Slot {
    int gpus;
    int milli;  // free of each
    std::int64_t cpu_milli;
    double demand;
    std::int64_t memory_mib = 0;  // of a room in memory, and milli is then 0
  };
  struct ModelSet {
    Groups groups;
    double demand;  // GPUs
  };

  void FindSlots(const RequestMix& mix, const Fleet& fleet);
  void FindModelSets(const RequestMix& mix);
  void FindRoom(const RequestMix& mix);
  void FindRoomInMemory(const RequestMix& mix);
  [[nodiscard]] static std::int64_t CountSlots(const GpuState& state, const Slot& slot);
  // How many slots of each size there are.
  void CountSlots(const GpuState& state, std::span<int> amounts) const;
  [[nodiscard]] double SlotPrice(const Slot& slot, double pods, std::int64_t slots) const;
  [[nodiscard]] double ModelPrice(const ModelSet& set, double pods,
                                  std::span<const std::int64_t> supply) const;

  const ModelGroups& groups_;
  const WasteParameters parameters_;
  const double points_per_gpu_;
  const CardWorth worth_;
  std::vector<Slot> slots_;
  std::vector<ModelSet> model_sets_;
  double mean_ask_ = 0;   // GPUs of a pod
  double all_milli_ = 0;  // of the fleet; 0 = not known
};

}  // namespace berth
