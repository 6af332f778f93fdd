// SPDX-License-Identifier: Apache-2.0
//
// PodDraws: the pods that simulated fillings of a node draw.
//
// A fill draws pods, independently, from the most frequent classes of the mix that make up
// `coverage` of it. A pod without GPU takes its CPU and main memory if it fits; a share goes to the
// fullest GPU that takes it (by gpu_state.h). The fill ends after `patience` GPU pods in a row that
// do not fit: one node sees only so many before the others have taken them. Draws are from fixed
// seeds, the same for all states, so that what differs between two states is the states.
//
// A class is drawn on the nodes of a GPU model with the weight
//
//   weight in the mix * draw * (GPUs of the fleet / GPUs of the models that it takes)
//
// or not at all if it does not take the model; the last factor is 1 for a class without models.
// `draw` (RequestClass) exists because drawn pods are not placed pods: small pods find room where
// large ones do not, and in a simulation they would fill every gap. Calibrate sets it so that the
// pods accepted by the fleet have the proportions of the pods that arrive: half of it as if the
// fleet were empty, half as it is now.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "scoring/waste/fleet.h"
#include "scoring/waste/gpu_state.h"
#include "scoring/waste/request_mix.h"

namespace berth {

// StateMemo: remembers a number per node state, in bounded memory and without locks.
class StateMemo {
 public:
  // 16 bytes each. Requires: slots is a power of two.
  explicit StateMemo(std::size_t slots)
      : mask_(slots - 1), slots_(std::make_unique<Slot[]>(slots)) {}

  [[nodiscard]] std::optional<double> Find(std::uint64_t key) const {
    const Slot& slot = slots_[key & mask_];
    const std::uint64_t bits = slot.bits.load(std::memory_order_relaxed);
    if ((slot.check.load(std::memory_order_relaxed) ^ bits) != key) return std::nullopt;
    return std::bit_cast<double>(bits);
  }

  void Store(std::uint64_t key, double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    Slot& slot = slots_[key & mask_];
    slot.bits.store(bits, std::memory_order_relaxed);
    slot.check.store(key ^ bits, std::memory_order_relaxed);
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> check{0};  // key ^ bits: halves of two states do not pass for one
    std::atomic<std::uint64_t> bits{0};
  };

  const std::uint64_t mask_;
  const std::unique_ptr<Slot[]> slots_;
};

// Immutable: any thread may call it.
class PodDraws {
 public:
  PodDraws(const RequestMix& mix, const Fleet& fleet, const WasteParameters& parameters);

  [[nodiscard]] const ModelGroups& groups() const { return groups_; }
  [[nodiscard]] const CardWorth& worth() const { return worth_; }

  // The free GPU left (gpu_state.h), in thousandths, as a mean over the fills: no more than there
  // was. Requires: a state of worth().StateOf.
  // `group`: of the node's GPU model.
  [[nodiscard]] double LeftMilli(const GpuState& state, std::size_t group) const;

  // Adds to accepted[class], `times` times, how many pods of each class the fills took in.
  void CountAccepted(const GpuState& state, std::size_t group, double times,
                     std::span<double> accepted) const;

  // The free main memory that a fill begins with, in MiB: in steps of a tenth of what the mix asks
  // for beside each GPU, so that few states differ in it alone. Where each free GPU has two and a
  // half times as much as that, or no pod says, memory is not what will be short: kPlentyMib.
  static constexpr std::int64_t kPlentyMib = std::int64_t{1} << 50;
  [[nodiscard]] std::int64_t MainMib(const GpuState& state) const;

  // The classes that are drawn from: indices into the mix.
  [[nodiscard]] std::span<const std::uint16_t> drawn() const { return drawn_; }

 private:
  static constexpr std::size_t kDraws = 512;  // per fill

  // A class as the nodes of one model group see it.
  struct Class {
    std::int64_t cpu_milli;
    int gpus;
    int milli;
    std::int64_t memory_mib;  // of a share that says it; else 0
    std::int64_t main_mib;    // main memory: the mean of the class
  };
  // From one draw of a fill to later ones; kDraws: there is none.
  struct Step {
    std::uint16_t lesser = 0;    // the next that asks for GPUs, but for less of each than this one
    std::uint16_t next_cpu = 0;  // the next without GPU
    std::uint16_t gpu_pods = 0;  // how many before this one ask for GPUs
  };
  // What the nodes of one model group need to know.
  struct Group {
    // [fill][kDraws] index into classes_; empty: nothing goes there
    std::vector<std::uint16_t> draws;
    std::vector<Step> steps;  // of the same draws
    // The classes with GPUs, but for those that ask for no less of anything than another one: where
    // none of these fits, nothing fits.
    std::vector<Class> least;
  };
  struct Rest;
  struct Filling;
  struct CardFilling;

  [[nodiscard]] Group MakeGroup(const RequestMix& mix, std::size_t group,
                                std::span<const double> rarity) const;
  void AddSteps(Group& made) const;
  static void KeepLeast(const Class& asked, std::vector<Class>& least);
  template <class Filled, class Accept>
  void Fill(const Group& group, std::size_t fill, Filled& filling, Accept accept) const;
  template <class Filled>
  [[nodiscard]] double LeftAfterFills(const Filled& start, const Group& group) const;

  const int fills_;
  const int patience_;
  const double optimism_milli_;
  const ModelGroups groups_;
  const CardWorth worth_;
  const std::int64_t main_mib_per_gpu_;  // that the pods with GPUs ask for
  std::vector<Class> classes_;           // of the mix
  std::vector<std::uint16_t> drawn_;
  std::vector<Group> by_group_;
};

// Changes the `draw` of every class once towards what makes the proportions right, on `fleet` and,
// unless it takes nothing, on `now` in equal parts. Costs `fills` fills per entry of both.
void Calibrate(RequestMix& mix, const Fleet& fleet, const Fleet& now,
               const WasteParameters& parameters);

// Takes over the `draw` of the classes that were known before. Both sorted by anything.
void InheritDraws(const RequestMix& before, RequestMix& mix);

// WastePotential: how much GPU a node will leave idle once the likely pods have filled it: compute,
// and memory where pods say how much of it their share needs (gpu_state.h).
//
//   W(node) = the free GPU that is left, averaged over the fills      (pod_draws.h)
//
// W of a state is remembered. Any thread may call it.

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
