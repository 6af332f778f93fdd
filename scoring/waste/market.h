// SPDX-License-Identifier: Apache-2.0
//
// Market: the scarce goods of a cluster and their prices.
//
// A scorer evaluates one node. The goods that its placement takes and that are scarce in the whole
// cluster (slots for eight GPUs, GPUs of a rare model) change their value all the time. So the two
// are separate: per node the amount of each good that a choice takes, which stays true until the
// node changes; per decision one price for each good, a function of the total amount on all nodes.
// No node is evaluated again when prices move.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/scorer.h"
#include "scoring/waste/fleet.h"
#include "scoring/waste/gpu_state.h"
#include "scoring/waste/request_mix.h"

namespace berth {

// What the free part of a GPU is worth to the shares that are still to come: shadow prices of a
// cutting-stock program (Gilmore and Gomory, "A linear programming approach to the cutting-stock
// problem", Operations Research 1961) with the parts of GPUs that are open as its stock.
//
//   min  sum over P of x_P                                  fresh GPUs that are cut by pattern P
//   s.t. for each size s of a share: sum over P of a_P(s) (x_P + sum over h of x_hP) >= demand(s)
//        for each level h:           sum over P of x_hP <= open(h)    GPUs with h free, cut by P
//
// A pattern is a set of shares that fit into one GPU, or into the level. A part is worth what the
// best pattern in it is worth by the prices of the demands, from 0 to the 1 of a fresh GPU. Pure
// functions, bounded in time: at most 500 steps, for 64 sizes at 99 levels 14 ms.

// Free compute of a GPU in hundredths, rounded down.
constexpr int kLevels = 100;
constexpr int LevelOf(int milli) { return milli * kLevels / kMilliPerGpu; }

// By level.
using Levels = std::array<double, kLevels + 1>;

struct ShareDemand {
  int level;     // that a share needs, 1..kLevels
  double count;  // how many shares, >= 0
};

// demand: each level once. open: how many GPUs have so much free; levels 0 and kLevels are ignored.
// In GPUs; nothing for an empty demand.
Levels WorthOfLevels(std::span<const ShareDemand> demand, const Levels& open);

// The mean where the demand is a Poisson variable: of some drawn demands, always the same ones.
Levels ExpectedWorthOfLevels(std::span<const ShareDemand> demand, const Levels& open);

// Amounts of goods, without those that are 0: of more than a hundred a node has a few.
using SomeGoods = std::vector<std::pair<std::uint16_t, int>>;
SomeGoods WithoutZeros(std::span<const int> amounts);

// Immutable: any thread may call it.
class Market {
 public:
  virtual ~Market() = default;

  [[nodiscard]] virtual std::size_t goods() const = 0;

  // Writes the node's amount of each good whose price depends on it, >= 0, and 0 of the others and
  // on a node that is not ready: the same for nodes that are alike (Node::likeness).
  // Requires: amounts.size() == goods().
  virtual void Supply(const Node& node, std::span<int> amounts) const = 0;

  // Writes the amount of each good that the choice takes; below 0 where it leaves more of it.
  // Requires: as above, and the choice fits the node.
  virtual void Taken(const Node& node, const RequestShape& shape, const DeviceChoice& choice,
                     std::span<int> amounts) const = 0;

  // What one of each good costs, in raw points of the scorer, where the cluster has `supply` of
  // them; 0 for one that Outlook knows. One price per good.
  [[nodiscard]] virtual std::vector<double> Prices(std::span<const std::int64_t> supply) const = 0;

  // The prices that take too long for a decision, so that they are made now and then: of as many
  // goods, from first_of_outlook() on.
  [[nodiscard]] virtual std::vector<double> Outlook(const Snapshot&) const { return {}; }
  [[nodiscard]] virtual std::size_t first_of_outlook() const { return goods(); }
};

// SupplyLedger: the nodes' amounts of each good of a market, and so its prices.
//
// A memo like the EvaluationTable: a function of the snapshot, updated by recounting only the nodes
// that are not the same objects as last time. Not thread-safe; ProfileTables guards it.

class SupplyLedger {
 public:
  // Requires: the market outlives the ledger.
  explicit SupplyLedger(const Market& market)
      : market_(market), sums_(market.goods()), counted_(market.goods()) {}

  // One price per good; until the next call.
  const std::vector<double>& PricesIn(const std::shared_ptr<const Snapshot>& snapshot);

  [[nodiscard]] const std::vector<double>& outlook() const { return outlook_; }
  // As Market::Outlook found it.
  void SetOutlook(std::vector<double> outlook) {
    outlook_ = std::move(outlook);
    if (snapshot_ != nullptr) MakePrices();
  }

 private:
  void CountAll(const Snapshot& snapshot);
  [[nodiscard]] SomeGoods AmountsOf(const Node& node);
  // sign: 1, or -1 for what is no more.
  void Count(const SomeGoods& amounts, int sign);
  void MakePrices();

  const Market& market_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::vector<std::int64_t> sums_;  // [good]
  std::vector<int> counted_;
  std::vector<double> prices_, outlook_;
};

// SlotPrior: the value of idle GPUs for pods of a kind that may not have come yet.
//
// The mix of arrived pods contains nothing about the others: after a day of small pods it predicts
// no large one, and before the first pod it predicts nothing at all. So slots for every power of
// two of GPUs, and whole nodes, have a price that never vanishes:
//
//   slots(node) = the GPUs of the node if all of them are idle, else 0
//                 + sum over k = 1, 2, 4, ... of k * (idle GPUs / k, rounded down)
//   price       = from the least price, where less than kFewFree of all GPU is free, up to
//                 WasteParameters::slot_price, where more than kMuchFree is
//   least price = kLeastSlotPrice, and up to kUnknownSlotPrice where few pods with GPUs have come:
//                 what none of n pods asked for the next asks for with a probability of about 1 / n
//
// A cluster of 8 nodes is full before the mix knows what comes, so there that price decides.
// If GPUs are scarce, the price is no more than the noise of the simulated fillings, and the mix
// decides. If pods come and go and there is room for all of them, packing loses nothing: remainders
// on a fuller node are not needed. If nothing is known, this is packing, like a buddy allocator.

// In GPUs, per GPU of the slots.
constexpr double kLeastSlotPrice = 0.001, kUnknownSlotPrice = 0.02;
// So many pods with GPUs tell nothing yet.
constexpr double kFewPods = 30;
// Parts of all GPU that are free, between which it rises.
constexpr double kFewFree = 0.3, kMuchFree = 0.6;

// 0..8 * state.count.
inline int SlotGpus(const GpuState& state) {
  const int idle = state.idle();
  int sum = idle == state.count ? idle : 0;
  for (int slot = 1; slot <= idle; slot *= 2) sum += slot * (idle / slot);
  return sum;
}

// gpu_pods: with GPUs, that the mix is of.
inline double LeastSlotPrice(double gpu_pods) {
  const double unknown = kFewPods / std::max(gpu_pods, kFewPods);
  return std::max(kLeastSlotPrice, kUnknownSlotPrice * unknown);
}

// free: part of all GPU, 0..1.
inline double SlotPriorPrice(double free, double slot_price, double least = kLeastSlotPrice) {
  const double plenty = std::clamp((free - kFewFree) / (kMuchFree - kFewFree), 0.0, 1.0);
  return std::max(least, kLeastSlotPrice + (slot_price - kLeastSlotPrice) * plenty);
}

// CpuPrice: the price of CPU for a pod without GPU on a node with GPUs, if CPU is scarce.
//
// If the pods that fill the GPUs ask for as much CPU as the nodes have, every remainder of CPU that
// is too small for the next pod leaves a part of a GPU idle elsewhere. So a pod without GPU then
// goes to the node on which it leaves the least CPU:
//
//   asked = CPU that the mix asks for per GPU / CPU of the fleet per GPU
//   price = kCpuPrice * CPU left / 128 cores, in GPUs; nothing where asked <= kPlentyOfCpu, rising
//           in equal steps to all of it where asked >= kScarceCpu
//
// The expected waste still keeps such a pod away from CPU that the node's own idle GPUs will need.

constexpr double kCpuPrice = 0.2;  // GPUs
constexpr double kPlentyOfCpu = 0.95, kScarceCpu = 1;

// The price of an empty largest node over that of a full one, in GPUs: 0..kCpuPrice; 0 if mix or
// fleet has no GPU.
inline double CpuPriceOf(const RequestMix& mix, const Fleet& fleet) {
  double asked_cpu = 0, asked_gpu = 0, cpu = 0, gpu = 0;
  for (const RequestClass& entry : mix) {
    asked_cpu += entry.weight * static_cast<double>(entry.shape.cpu_milli);
    asked_gpu += entry.weight * entry.shape.gpu_count() * entry.shape.milli_per_gpu();
  }
  for (const NodeKind& kind : fleet) {
    cpu += static_cast<double>(kind.state.cpu_milli) * kind.nodes;
    gpu += static_cast<double>(kind.state.total) * kind.nodes;
  }
  if (asked_gpu <= 0 || cpu <= 0) return 0;
  const double asked = asked_cpu / asked_gpu / (cpu / gpu);
  return kCpuPrice * std::clamp((asked - kPlentyOfCpu) / (kScarceCpu - kPlentyOfCpu), 0.0, 1.0);
}

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
//   room for a large share where memory is counted (gpu_state.h), of the size (above half a GPU, or
//   a whole one) that pods with one GPU ask most of; one in compute and one in memory, both prices
//   multiplied by what the one is worth:
//     price = share_price * size * min(2, (N * demand / rooms)^8)
//     demand: GPUs that a pod needs in the mean with as much free as that
//   a GPU of a model, for each of the 64 sets of models that classes name most and the model
//   belongs to:
//     price = model_price * min(limit, N * demand / free GPU of the set), the largest of the sets
//     demand: GPU that a pod needs in the mean and can find only within the set
//   slots of every size for pods of a kind that has not come: see above
//   a part of a GPU, by level (ShareWorth), where memory is not counted:
//     price = what it is worth to the shares of N pods - its size
//     A share of one GPU takes a part of one level, and leaves one of a lower level. A whole
//     GPU is no part; it stands as level 0, which costs nothing.
class ScarcityMarket final : public Market {
 public:
  // points_per_gpu: of the raw scores that prices are given in. Requires: groups outlives it and is
  // of the same mix.
  ScarcityMarket(const RequestMix& mix, const ModelGroups& groups, const Fleet& fleet,
                 const WasteParameters& parameters, double points_per_gpu,
                 const CardWorth& worth = {});

  // First the free GPU of each model group, in thousandths; then the slots; then the levels of
  // parts; last the slots of every size (SlotGpus).
  [[nodiscard]] std::size_t goods() const override {
    return groups_.size() + slots_.size() + (shares_.empty() ? 0 : kLevels) + 1;
  }
  void Supply(const Node& node, std::span<int> amounts) const override;
  void Taken(const Node& node, const RequestShape& shape, const DeviceChoice& choice,
             std::span<int> amounts) const override;
  [[nodiscard]] std::vector<double> Prices(std::span<const std::int64_t> supply) const override;
  [[nodiscard]] std::vector<double> Outlook(const Snapshot& snapshot) const override;
  [[nodiscard]] std::size_t first_of_outlook() const override {
    return groups_.size() + slots_.size();
  }

 private:
  static constexpr std::size_t kMostShares = 64;  // sizes, those that most GPU is asked of
  static constexpr std::size_t kMostSlots = 8;    // beside the rooms
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
  void FindShares(const RequestMix& mix);
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
  std::vector<ShareDemand> shares_;  // of a pod in the mean
  double mean_ask_ = 0;              // GPUs of a pod
  double all_milli_ = 0;             // of the fleet; 0 = not known
};

}  // namespace berth
