// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/waste_report.h"

#include "scoring/waste/fleet.h"
#include "scoring/waste/gpu_state.h"

namespace berth {
namespace {

constexpr std::array<std::string_view, kFragmentCauses> kCauseNames = {
    "no_gpu_asked", "model", "gpu_share", "whole_gpu_slots", "cpu", "memory"};

struct Fragment {
  FragmentCause cause;
  int milli;
};

Fragment FragmentOf(const Node& node, const GpuState& state, const RequestShape& wanted) {
  if (!wanted.wants_gpu()) return {FragmentCause::kNoGpuAsked, state.total};
  if (!wanted.Admits(node.spec().gpu_model)) return {FragmentCause::kModel, state.total};
  const FragmentCause gpus =
      wanted.is_share() ? FragmentCause::kGpuShare : FragmentCause::kWholeGpuSlots;
  const int milli = wanted.milli_per_gpu(), least = state.count - wanted.gpu_count();
  if (least < 0 || state.free[static_cast<std::size_t>(least)] < milli) return {gpus, state.total};
  if (state.cpu_milli < wanted.cpu_milli) return {FragmentCause::kCpu, state.total};
  if (node.free_memory_bytes() < wanted.memory_bytes) return {FragmentCause::kMemory, state.total};
  int too_full = 0;
  for (std::size_t g = 0; state.free[g] < milli; ++g) too_full += state.free[g];
  return {gpus, too_full};
}

}  // namespace

std::string_view NameOf(FragmentCause cause) {
  return kCauseNames[static_cast<std::size_t>(cause)];
}

std::array<double, kFragmentCauses> FragmentByCause(const Node& node, const RequestMix& mix) {
  std::array<double, kFragmentCauses> by_cause{};
  const GpuState state(node);
  if (state.total == 0) return by_cause;
  for (const RequestClass& entry : mix) {
    const auto [cause, milli] = FragmentOf(node, state, entry.shape);
    by_cause[static_cast<std::size_t>(cause)] += entry.weight * milli;
  }
  return by_cause;
}

void WasteReport::Measure(NodeIndex index, const Node& node) {
  by_node_[index] = {potential_->WasteMilli(node), FragmentByCause(node, calibrated_)};
}

std::map<std::string, Waste> WasteReport::Of(const std::shared_ptr<const Snapshot>& snapshot,
                                             const LearnedMix::Epoch& epoch) {
  const MutexLock lock(mutex_);
  if (epoch.mix != epoch_.mix) {
    const Fleet fleet = FleetOf(*snapshot);
    RequestMix mix = OnFleet(*epoch.mix, ModelsOf(fleet));
    InheritDraws(calibrated_, mix);
    for (int round = 0; round < kRounds; ++round) Calibrate(mix, fleet, {}, parameters_);
    potential_ = std::make_unique<WastePotential>(mix, fleet, parameters_);
    calibrated_ = std::move(mix);
    snapshot_ = nullptr;
    epoch_ = epoch;  // last: where memory runs out, the next call begins anew
  }
  if (snapshot_ == nullptr || !snapshot->SameNodes(*snapshot_)) {
    snapshot_ = nullptr;
    by_node_.assign(snapshot->size(), {});
    for (NodeIndex i = 0; i < snapshot->size(); ++i) Measure(i, snapshot->node(i));
  } else {
    std::vector<NodeIndex> changed;
    snapshot->ForEachDifference(*snapshot_, [&changed](NodeIndex i) { changed.push_back(i); });
    for (const NodeIndex i : changed) Measure(i, snapshot->node(i));
  }
  snapshot_ = snapshot;
  std::map<std::string, Waste> by_model;
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    const NodeSpec& spec = snapshot->node(i).spec();
    if (spec.gpus.empty()) continue;
    Waste& waste = by_model[spec.gpu_model];
    waste.expected_milli += by_node_[i].expected_milli;
    for (std::size_t cause = 0; cause < kFragmentCauses; ++cause) {
      waste.fragment_milli[cause] += by_node_[i].fragment_milli[cause];
    }
  }
  return by_model;
}

}  // namespace berth
