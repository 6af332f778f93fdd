// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/near_nodes.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "scoring/admission.h"
#include "scoring/devices/device_picker.h"
#include "scoring/explain/needs.h"
#include "scoring/explain/node_report.h"
#include "scoring/registry.h"

namespace berth {
namespace {

using NeedMask = std::uint32_t;

NeedMask BitOf(Need need) { return NeedMask{1} << static_cast<unsigned>(need); }

// Wishes: only the pod's author knows how much they matter.
constexpr NeedMask kWishes = (NeedMask{1} << static_cast<unsigned>(Need::kTaints)) - 1;

bool IsShortNow(Reason reason) {
  return (reason >= Reason::kCpuShort && reason <= Reason::kMigHeld) ||
         reason == Reason::kNoDomainHasRoom;
}

// How many GPUs, or thousandths of one, are missing.
int MissingOn(const Node& node, const RequestShape& shape) {
  if (const auto* const share = std::get_if<GpuShare>(&shape.gpus)) {
    std::vector<int> milli(static_cast<std::size_t>(share->count), 0);
    for (std::size_t gpu = 0; gpu < node.gpus().size(); ++gpu) {
      if (!node.IsOpen(static_cast<int>(gpu))) continue;
      if (shape.AdmitsGpu(node.spec().gpus[gpu].uuid)) milli.push_back(node.gpus()[gpu].milli);
    }
    const auto last = milli.begin() + share->count - 1;
    std::ranges::nth_element(milli, last, std::greater<>());
    return std::max(shape.milli_per_gpu() - *last, 0);
  }
  const int wanted = shape.gpu_count();
  if (wanted == 0) return 0;
  const int free =
      node.spec().places.count > 0 ? node.free_places() : std::popcount(FreeGpus(node, shape));
  return std::max(wanted - free, 0);
}

// Whether the reason may be another one for a pod without that need: no other check asks for it. So
// few pairs remain that every node can be asked again.
bool MayDecide(Need need, Reason reason) {
  using enum Reason;
  switch (need) {
    case Need::kLink:
    case Need::kNuma:
    case Need::kBandwidth:
    case Need::kLinks:
      return IsAboutLinks(reason);
    case Need::kDomain:
      return reason == kNoTopologyDomain || reason == kOutsideDomain || reason == kNoDomainHasRoom;
    case Need::kIsolation:
      return reason == kTimeSliced || reason == kSharedSomehow || reason == kSharesUnguarded ||
             reason == kNotItsOwn;
    case Need::kGpuMemory:
      return reason == kGpuTooSmall || reason == kGpuMemoryUnknown;
    case Need::kTaints:
      return reason == kTaintNotTolerated;
    case Need::kSelection:
      return reason == kNodeNotSelected;
    case Need::kModel:
      return reason == kModelMismatch;
    case Need::kTraits:
      return reason == kTraitMissing || reason == kTraitForbidden;
    case Need::kGpuUuids:  // other GPUs may be free
      return reason == kGpuMismatch || reason == kTooFewGpus || reason == kGpusBusy ||
             reason == kGpusHeld || reason == kShareBusy || reason == kShareHeld ||
             reason == kNumaBusy || reason == kNumaHeld;
    case Need::kResource:
      return reason == kOtherResource;
    case Need::kCpu:
      return reason == kCpuShort || reason == kCpuHeld || reason == kTooFewCpus;
    case Need::kMemory:
      return reason == kMemoryShort || reason == kMemoryHeld || reason == kTooLittleMemory;
    case Need::kDisk:
      return reason == kDiskShort || reason == kDiskHeld || reason == kTooLittleDisk;
    case Need::kCount:
      break;
  }
  return false;
}

// Whether the node would take the pod if the pod's group did not matter.
bool TakesAlone(const Node& node, const PodRequest& pod) {
  return FirstObjection(node, pod.shape) == Reason::kFits &&
         Admits(node.spec(), pod) == Reason::kFits;
}

class NearSearch {
 public:
  NearSearch(const Snapshot& snapshot, const Question& question, std::span<const Reason> reasons)
      : snapshot_(snapshot), question_(question), reasons_(reasons), without_(reasons.size(), 0) {
    for (const Need need : kNeeds) {
      if (const auto pod = Without(question.pod, need)) TryWithout(need, *pod);
    }
  }

  [[nodiscard]] std::vector<NearNode> Nearest(std::size_t most) const {
    // A few more are looked at than are reported: what a pod that ends frees is known only then.
    const std::vector<std::size_t> nearest = Positions(most * 2);
    std::vector<std::pair<std::size_t, NearNode>> ranked;
    for (const std::size_t at : nearest) {
      std::size_t rank = 0;
      NearNode near = NodeAt(at, rank);
      ranked.emplace_back(rank, std::move(near));
    }
    std::ranges::stable_sort(ranked, {}, &std::pair<std::size_t, NearNode>::first);
    std::vector<NearNode> told;
    for (auto& [rank, near] : ranked) {
      if (told.size() < most) told.push_back(std::move(near));
    }
    return told;
  }

 private:
  // pod: without the need.
  void TryWithout(Need need, const PodRequest& pod) {
    for (std::size_t i = 0; i < reasons_.size(); ++i) {
      if (MayDecide(need, reasons_[i]) && TakesAlone(NodeOf(i), pod)) without_[i] |= BitOf(need);
    }
  }

  [[nodiscard]] const Node& NodeOf(std::size_t at) const {
    return snapshot_.node(question_.candidates[at]);
  }

  // Before the search for pods that could end: nodes that lack what others have come first, then
  // those that one change would open, then the rest.
  [[nodiscard]] std::vector<std::size_t> Positions(std::size_t most) const {
    using Key = std::tuple<int, int, NodeIndex, std::size_t>;
    std::vector<Key> keys;
    for (std::size_t i = 0; i < reasons_.size(); ++i) {
      const Reason reason = reasons_[i];
      if (VerdictOf(reason) == Verdict::kFits || reason == Reason::kPodRefused) continue;
      const bool wish = (without_[i] & kWishes) != 0;
      const int kind = wish ? 0 : IsShortNow(reason) ? 1 : without_[i] != 0 ? 2 : 3;
      const int missing = MissingOn(NodeOf(i), question_.pod.shape);
      const bool no_gpu = question_.pod.shape.wants_gpu() && reason == Reason::kNoGpu;
      keys.emplace_back(no_gpu ? 4 : kind, missing, question_.candidates[i], i);
    }
    const std::size_t count = std::min(most, keys.size());
    std::ranges::partial_sort(keys, keys.begin() + static_cast<std::ptrdiff_t>(count));
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < count; ++i) positions.push_back(std::get<3>(keys[i]));
    return positions;
  }

  // Ranks, the lower the better: a wish, pods that end, another need, less of it, another node.
  [[nodiscard]] NearNode NodeAt(std::size_t at, std::size_t& best_rank) const {
    const Node& node = NodeOf(at);
    const PodRequest& pod = question_.pod;
    NearNode near{question_.candidates[at], reasons_[at], LackText(node, pod, reasons_[at]), {}};
    std::vector<std::pair<std::size_t, WayIn>> ways;
    for (const Need need : kNeeds) {
      if ((without_[at] & BitOf(need)) == 0) continue;
      if (need == Need::kLinks && (without_[at] & (BitOf(Need::kLinks) - 1)) != 0) continue;
      std::string text = Instead(pod, need, node);
      if (text.empty() || !FitsOn(near.node, node, *Without(pod, need))) continue;
      ways.emplace_back((kWishes & BitOf(need)) != 0 ? 0
                        : need < Need::kCpu          ? 2
                                                     : 3,
                        WayIn{std::string(CodeOf(need)), std::move(text)});
    }
    if (WayIn pods = PodsThatEnd(near.node, node); !pods.pods.empty()) {
      ways.emplace_back(1 + (pods.pods.size() > 1 ? 1 : 0), std::move(pods));
    }
    if (WayIn node_way = NodeChange(near.node, node); !node_way.text.empty()) {
      ways.emplace_back(2, std::move(node_way));
    }
    if (!pod.domain.required && Admits(node.spec(), pod) == Reason::kFits) {
      if (std::string less = WithLess(pod, node); !less.empty()) {
        ways.emplace_back(3, WayIn{"size", std::move(less)});
      }
    }
    std::ranges::stable_sort(ways, {}, &std::pair<std::size_t, WayIn>::first);
    best_rank = ways.empty() ? 4 : ways.front().first;
    for (auto& [rank, way] : ways) near.ways.push_back(std::move(way));
    return near;
  }

  // Whether the pod would fit if the node were so.
  [[nodiscard]] bool FitsOn(NodeIndex index, const Node& node, const PodRequest& pod) const {
    if (!TakesAlone(node, pod)) return false;
    if (!question_.group.tree || !pod.domain.required) return true;
    return MayJoin(*question_.group.tree, pod, question_.group.members, index) == Reason::kFits &&
           HoldsRestOfGroup(snapshot_, *question_.group.tree, pod, question_.group.members, index,
                            node);
  }

  // The pods of the node, so few that the pod fits without them: one if that is enough; of several
  // such the one with the least GPU, then by name.
  [[nodiscard]] WayIn PodsThatEnd(NodeIndex index, const Node& node) const {
    using Pod = const PodRecord*;
    std::vector<Pod> pods;
    for (const auto& pod : node.pods()) {  // a planned one runs nowhere yet
      if (pod->state != PodState::kPlanned) pods.push_back(pod.get());
    }
    const auto size = [](Pod pod) {
      std::int64_t milli = 0;
      for (const DeviceGrant& grant : pod->placement.grants) milli += grant.milli;
      return std::tuple(milli, pod->placement.mig.size(), pod->pod.id.full_name());
    };
    std::ranges::sort(pods, {}, size);
    const auto fits_without = [&](const std::vector<Pod>& gone) {
      const auto leaves = [&gone](const PodRecord& pod) {
        return std::ranges::any_of(gone, [&](Pod one) { return one->pod.id == pod.pod.id; });
      };
      return FitsOn(index, node.Without(leaves), question_.pod);
    };
    if (pods.empty() || !fits_without(pods)) return {};
    for (Pod pod : pods) {
      if (fits_without({pod})) return Ending({pod});
    }
    std::vector<Pod> gone;
    for (auto pod = pods.rbegin(); pod != pods.rend() && !fits_without(gone); ++pod) {
      gone.push_back(*pod);
    }
    for (std::size_t i = gone.size(); i-- > 0;) {  // what turned out not to be needed
      std::vector<Pod> fewer = gone;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (fits_without(fewer)) gone = std::move(fewer);
    }
    return Ending(gone);
  }

  static WayIn Ending(const std::vector<const PodRecord*>& pods) {
    WayIn way{"pods_end", "when ", {}};
    for (const PodRecord* const pod : pods) way.pods.push_back(pod->pod.id.full_name());
    std::ranges::sort(way.pods);
    if (way.pods.size() > kMostEnding) {
      way.text += std::to_string(way.pods.size()) + " of its pods end";
      return way;
    }
    for (std::size_t i = 0; i < way.pods.size(); ++i) {
      way.text += (i == 0 ? "" : i + 1 == way.pods.size() ? " and " : ", ") + way.pods[i];
    }
    way.text += way.pods.size() == 1 ? " ends" : " end";
    return way;
  }

  // What would have to become of the node itself.
  [[nodiscard]] WayIn NodeChange(NodeIndex index, const Node& node) const {
    NodeSpec spec = node.spec();
    const auto fits_as = [&](const NodeSpec& other) {
      const PodRecords pods(node.pods().begin(), node.pods().end());
      return FitsOn(index, Node(std::make_shared<const NodeSpec>(other), pods, node.claims()),
                    question_.pod);
    };
    if (!spec.ready) {
      spec.ready = true;
      return fits_as(spec) ? WayIn{"node_ready", "once the node is ready"} : WayIn{};
    }
    if (!spec.gpu_condition.empty()) {
      const std::string condition = std::exchange(spec.gpu_condition, "");
      return fits_as(spec) ? WayIn{"node_ready", "once its condition " + condition + " clears"}
                           : WayIn{};
    }
    if (spec.refuses_gpu_pods) {
      spec.refuses_gpu_pods = false;
      return fits_as(spec) ? WayIn{"node_ready", "once its kubelet admits GPU pods again"}
                           : WayIn{};
    }
    if (spec.refused_asks != nullptr) {
      spec.refused_asks = nullptr;
      return fits_as(spec) ? WayIn{"node_ready", "once its Topology Manager admits such pods again"}
                           : WayIn{};
    }
    int sick = spec.missing;
    for (GpuSpec& gpu : spec.gpus) sick += std::exchange(gpu.healthy, true) ? 0 : 1;
    spec.missing = 0;
    if (sick == 0 || !fits_as(spec)) return {};
    return {"gpus_well", "once " + CountText(sick, "GPU") + " of it " + (sick == 1 ? "is" : "are") +
                             " healthy again"};
  }

  const Snapshot& snapshot_;
  const Question& question_;
  const std::span<const Reason> reasons_;
  // By candidate: the needs without which it would fit, if the pod's group did not matter.
  std::vector<NeedMask> without_;
};

}  // namespace

std::vector<NearNode> NearNodes(const Snapshot& snapshot, const Question& question,
                                std::span<const Reason> reasons, std::size_t most) {
  return NearSearch(snapshot, question, reasons).Nearest(most);
}

std::string TextOf(const Snapshot& snapshot, const NearNode& near, bool told) {
  constexpr std::size_t kTold = 2;
  const bool says_more = !told || near.lack != PredicateOf(near.reason);
  if (!says_more && near.ways.empty()) return "";
  std::string text = snapshot.node(near.node).spec().name + ": ";
  if (says_more) text += near.lack + (near.ways.empty() ? "" : "; ");
  for (std::size_t i = 0; i < std::min(kTold, near.ways.size()); ++i) {
    text += (i == 0 ? "fits " : ", or ") + near.ways[i].text;
  }
  return text;
}

}  // namespace berth
