// SPDX-License-Identifier: Apache-2.0
//
// WastePotential: how much GPU a node will leave idle once the likely pods have filled it: compute,
// and memory where pods say how much of it their share needs (card_worth.h).
//
//   W(node) = the free GPU that is left, averaged over the fills      (pod_draws.h)
//
// Main memory is ignored. W of a state is remembered (state_memo.h). Any thread may call it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "scoring/waste/pod_draws.h"
#include "scoring/waste/state_memo.h"

namespace berth {

class WastePotential {
 public:
  WastePotential(const RequestMix& mix, const Fleet& fleet, const WasteParameters& parameters)
      : draws_(mix, fleet, parameters), memo_(std::make_unique<StateMemo>(kMemoSlots)) {}

  // W in thousandths of a GPU, no more than is free. `group`: of the node's GPU model, in groups().
  // Requires: a state of worth().StateOf.
  [[nodiscard]] double WasteMilli(const GpuState& state, std::size_t group) const;
  [[nodiscard]] double WasteMilli(const Node& node) const {
    return WasteMilli(worth().StateOf(node), groups().GroupOf(node.spec().gpu_model));
  }

  [[nodiscard]] const ModelGroups& groups() const { return draws_.groups(); }
  [[nodiscard]] const CardWorth& worth() const { return draws_.worth(); }
  // How many states were not remembered, so far.
  [[nodiscard]] std::uint64_t computed() const { return computed_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kMemoSlots = 1 << 17;  // 2 MiB

  const PodDraws draws_;
  const std::unique_ptr<StateMemo> memo_;
  mutable std::atomic<std::uint64_t> computed_{0};
};

}  // namespace berth
