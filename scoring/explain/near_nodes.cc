// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/near_nodes.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "base/text.h"
#include "scoring/admission.h"
#include "scoring/devices/device_picker.h"
#include "scoring/explain/needs.h"
#include "scoring/explain/node_access.h"
#include "scoring/explain/node_report.h"
#include "scoring/explain/other_limits.h"
#include "scoring/explain/preemption_outlook.h"
#include "scoring/registry.h"

namespace berth {
namespace {

using NeedMask = std::uint32_t;

constexpr NeedMask BitOf(Need need) { return NeedMask{1} << static_cast<unsigned>(need); }

// Where one of these is enough, they are not told together.
constexpr NeedMask kOneOfAccess = BitOf(Need::kTaints) | BitOf(Need::kSelection);

// Wishes: only the pod's author knows how much they matter.
constexpr NeedMask kWishes = (NeedMask{1} << static_cast<unsigned>(Need::kTaints)) - 1;

bool IsShortNow(Reason reason) {
  return (reason >= Reason::kCpuShort && reason <= Reason::kMigHeld) ||
         reason == Reason::kNoDomainHasRoom;
}

// How much smaller the largest device is that the node could give now, in memory units of its
// product, than the one that is asked for by name. 0: the ask is another one.
int MissingMig(const Node& node, const RequestShape& shape, const MigSlices& ask) {
  constexpr int kAll = 1 << 10;  // more than any product has
  if (!ask.by_name() || ask.wants.size() != 1) return 0;
  const NodeMig& mig = node.spec().mig;
  if (!mig.known() || mig->product == nullptr) return 2 * kAll;
  const auto& rows = mig->product->rows();
  const auto asked = std::ranges::find(rows, *ask.wants.front().profile, &MigRow::profile);
  const MigRow* const best = LargestSmallerMig(shape, 1, node);
  return std::max((asked == rows.end() ? kAll : asked->memory_units) -
                      (best == nullptr ? 0 : best->memory_units),
                  0);
}

// How many GPUs, thousandths of one, or units of a MIG device's memory are missing.
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
  if (const MigSlices* const mig = shape.mig()) return MissingMig(node, shape, *mig);
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
    case Need::kAccess:
      return reason == kTaintNotTolerated || reason == kNodeNotSelected;
    case Need::kModel:
      return reason == kModelMismatch;
    case Need::kTraits:
      return reason == kTraitMissing || reason == kTraitForbidden;
    case Need::kGpuUuids:  // other GPUs may be free
      return reason == kGpuMismatch || reason == kTooFewGpus || reason == kGpusBusy ||
             reason == kShareBusy || reason == kNumaBusy;
    case Need::kResource:
      return reason == kOtherResource;
    case Need::kCpu:
      return reason == kCpuShort || reason == kTooFewCpus;
    case Need::kMemory:
      return reason == kMemoryShort || reason == kTooLittleMemory;
    case Need::kDisk:
      return reason == kDiskShort || reason == kTooLittleDisk;
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

// What has to happen: the lower the nearer.
enum class Effort {
  kWish,
  kOnePod,
  kSeveralPods,
  kNeed,
  kTwoNeeds,
  kNodeState,
  kLess,
  kNodeAndPods,
  kNothingHelps
};

Effort EffortOf(Need need) {
  if ((kWishes & BitOf(need)) != 0) return Effort::kWish;
  if (need == Need::kAccess) return Effort::kTwoNeeds;
  return need < Need::kCpu ? Effort::kNeed : Effort::kLess;
}

// How near a node is. What compares less is nearer.
struct Distance {
  Effort effort = Effort::kNothingHelps;
  std::size_t pods = 0;  // that have to end
  bool has_no_gpu = false;
  int missing = 0;
  NodeIndex node = kNoNode;
  std::size_t at = 0;  // among the candidates
  friend auto operator<=>(const Distance&, const Distance&) = default;
};

// No smaller size of the request changes these.
bool IsApartFromSize(Reason reason) {
  using enum Reason;
  return reason == kNodeNotReady || reason == kRefusesGpuPods || reason == kGpuCondition ||
         reason == kNoGpu || reason == kModelMismatch || reason == kTaintNotTolerated ||
         reason == kNodeNotSelected || reason == kTraitMissing || reason == kTraitForbidden;
}

bool MayGetWell(const NodeSpec& spec) {
  return !spec.ready || !spec.gpu_condition.empty() || spec.refuses_gpu_pods ||
         spec.refused_asks != nullptr || spec.missing > 0 ||
         std::ranges::any_of(spec.taints, PassesByItself) ||
         std::ranges::any_of(spec.gpus,
                             [](const GpuSpec& gpu) { return !gpu.healthy && !gpu.foreign; });
}

class NearSearch {
 public:
  NearSearch(const Snapshot& snapshot, const Question& question, std::span<const Reason> reasons)
      : snapshot_(snapshot), question_(question), reasons_(reasons), without_(reasons.size(), 0) {
    for (const Need need : kNeeds) {
      if (const auto pod = Without(question.pod, need)) TryWithout(need, *pod);
    }
  }

  std::vector<NearNode> Nearest(std::size_t most) {
    std::vector<Distance> open, closed;  // at least so far away
    for (std::size_t i = 0; i < reasons_.size(); ++i) {
      if (VerdictOf(reasons_[i]) == Verdict::kFits || reasons_[i] == Reason::kPodRefused) continue;
      const bool is_open = ClosedBy(NodeOf(i), question_.pod) == Reason::kFits;
      (is_open ? open : closed).push_back(LeastOf(i, is_open));
    }
    Ranked ranked = Rank(std::move(open), most);
    if (ranked.empty() || ranked.begin()->first.effort == Effort::kNothingHelps) {
      Ranked others = Rank(std::move(closed), most);
      std::erase_if(others, [&ranked](const auto& one) {
        return !ranked.empty() && one.first.effort == Effort::kNothingHelps;
      });
      ranked.merge(others);
    }
    std::vector<NearNode> told;
    for (auto& [distance, near] : ranked) {
      if (told.size() < most) told.push_back(std::move(near));
    }
    return told;
  }

 private:
  using Ranked = std::map<Distance, NearNode>;

  // The nearest `most`, and perhaps more. at_least: no node is nearer than it says there.
  Ranked Rank(std::vector<Distance> at_least, std::size_t most) {
    std::ranges::sort(at_least);
    judged_ = 0;
    Ranked ranked;
    for (const Distance& least : at_least) {
      if (ranked.size() >= most) {
        const auto last = std::next(ranked.begin(), static_cast<std::ptrdiff_t>(most) - 1);
        if (last->first < least || judged_ >= kMostJudged) break;
      }
      Distance exact = least;
      NearNode near = NodeAt(least.at, exact);
      ranked.emplace(exact, std::move(near));
    }
    return ranked;
  }

  // pod: without the need.
  void TryWithout(Need need, const PodRequest& pod) {
    for (std::size_t i = 0; i < reasons_.size(); ++i) {
      if (!MayDecide(need, ShortageOf(reasons_[i]))) continue;
      if (need == Need::kAccess && (without_[i] & kOneOfAccess) != 0) continue;
      if (TakesAlone(NodeOf(i), pod)) without_[i] |= BitOf(need);
    }
  }

  [[nodiscard]] const Node& NodeOf(std::size_t at) const {
    return snapshot_.node(question_.candidates[at]);
  }

  // A lower bound, by what can be counted. Of a closed node a change of the pod alone helps.
  [[nodiscard]] Distance LeastOf(std::size_t at, bool is_open) const {
    const Node& node = NodeOf(at);
    const Reason reason = reasons_[at];
    const RequestShape& shape = question_.pod.shape;
    Distance least{
        .has_no_gpu = shape.wants_gpu() && reason == Reason::kNoGpu && !node.spec().gpus_to_come,
        .missing = MissingOn(node, shape),
        .node = question_.candidates[at],
        .at = at};
    for (const Need need : kNeeds) {
      if ((without_[at] & BitOf(need)) != 0) least.effort = std::min(least.effort, EffortOf(need));
    }
    if (!is_open) return least;
    if (IsShortNow(reason)) {
      if (const auto pods = LeastEnding(node, shape); pods && least.effort > Effort::kWish) {
        least.effort = *pods == 1 ? Effort::kOnePod : Effort::kSeveralPods;
        least.pods = *pods;
      }
    }
    if (MayGetWell(node.spec())) least.effort = std::min(least.effort, Effort::kNodeState);
    if (!IsApartFromSize(reason)) least.effort = std::min(least.effort, Effort::kLess);
    return least;
  }

  // exact: what was counted so far; from then on what was found.
  [[nodiscard]] NearNode NodeAt(std::size_t at, Distance& exact) {
    const Node& node = NodeOf(at);
    const PodRequest& pod = question_.pod;
    const NodeIndex index = question_.candidates[at];
    const Reason told = FirstInOrder(node, pod, reasons_[at]);
    NearNode near{index, told, LackText(node, pod, told), {}};
    const Reservations* const reservations = question_.reservations;
    const EarmarkOwner* const kept =
        reservations == nullptr ? nullptr : reservations->KeptFor(pod, snapshot_, index);
    Ways ways = NeedWays(at);
    exact.pods = 0;
    if (WayIn pods = PodsThatEnd(at, node); !pods.pods.empty()) {
      exact.pods = pods.pods.size();
      ways.emplace_back(exact.pods == 1 ? Effort::kOnePod : Effort::kSeveralPods, std::move(pods));
    }
    if (WayIn node_way = NodeChange(index, node); !node_way.text.empty()) {
      const Effort effort = node_way.pods.empty() ? Effort::kNodeState : Effort::kNodeAndPods;
      ways.emplace_back(effort, std::move(node_way));
    }
    if (kept == nullptr && !pod.domain.required && Admits(node.spec(), pod) == Reason::kFits) {
      if (std::string less = WithLess(pod, node); !less.empty()) {
        ways.emplace_back(Effort::kLess, WayIn{"size", std::move(less)});
      }
    }
    if (kept != nullptr && ways.empty()) {
      near.lack += "; what becomes free there is reserved for " +
                   (kept->gang.empty() ? kept->pod.full_name() : kept->gang.full_name());
    }
    std::ranges::stable_sort(ways, {}, &std::pair<Effort, WayIn>::first);
    exact.effort = ways.empty() ? Effort::kNothingHelps : ways.front().first;
    if (exact.effort != Effort::kOnePod && exact.effort != Effort::kSeveralPods) exact.pods = 0;
    for (auto& [effort, way] : ways) near.ways.push_back(std::move(way));
    return near;
  }

  using Ways = std::vector<std::pair<Effort, WayIn>>;

  [[nodiscard]] Ways NeedWays(std::size_t at) {
    const Node& node = NodeOf(at);
    const PodRequest& pod = question_.pod;
    Ways ways;
    for (const Need need : kNeeds) {
      if ((without_[at] & BitOf(need)) == 0) continue;
      if (need == Need::kLinks && (without_[at] & (BitOf(Need::kLinks) - 1)) != 0) continue;
      std::string text = Instead(pod, need, node);
      if (text.empty() || !FitsOn(question_.candidates[at], node, *Without(pod, need))) continue;
      ways.emplace_back(EffortOf(need), WayIn{std::string(CodeOf(need)), std::move(text)});
    }
    return ways;
  }

  // Whether the pod would fit if the node were so.
  [[nodiscard]] bool FitsOn(NodeIndex index, const Node& node, const PodRequest& pod) {
    ++judged_;
    if (!TakesAlone(node, pod) || !LackOf(node, pod).empty()) return false;
    const Reservations* const kept = question_.reservations;
    if (kept != nullptr && kept->IsKeptWithout(pod, snapshot_, index, node)) return false;
    if (!question_.group.tree || !pod.domain.required) return true;
    judged_ += kOfGroup - 1;
    return MayJoin(*question_.group.tree, pod, question_.group.members, index) == Reason::kFits &&
           HoldsRestOfGroup(snapshot_, *question_.group.tree, pod, question_.group.members, index,
                            node);
  }

  [[nodiscard]] WayIn PodsThatEnd(std::size_t at, const Node& node) {
    if (!IsShortNow(reasons_[at])) return {};
    const NodeIndex index = question_.candidates[at];
    const auto fits = [&](const Node& other) { return FitsOn(index, other, question_.pod); };
    const std::vector<const PodRecord*> gone = EndingPods(node, question_.pod.shape, fits);
    return gone.empty() ? WayIn() : Ending(gone);
  }

  static WayIn Ending(const std::vector<const PodRecord*>& pods) {
    WayIn way{"pods_end", "when ", {}};
    const auto ending = std::ranges::count_if(pods, &PodRecord::leaving);
    std::string now = ending == 0 ? "" : " (it is ending now)";
    if (ending > 0 && pods.size() > 1) {
      now = " (" + std::to_string(ending) + (ending == 1 ? " is" : " are") + " ending now)";
    }
    for (const PodRecord* const pod : pods) way.pods.push_back(pod->pod.id.full_name());
    std::ranges::sort(way.pods);
    if (way.pods.size() > kMostEnding) {
      way.text += Listed(way.pods, kEndingNamed) + " of its pods end" + now;
      return way;
    }
    for (std::size_t i = 0; i < way.pods.size(); ++i) {
      way.text += (i == 0 ? "" : i + 1 == way.pods.size() ? " and " : ", ") + way.pods[i];
    }
    // Its controller makes a pod of a Deployment anew at once.
    const auto of_deployments = std::ranges::count_if(
        pods, [](const PodRecord* pod) { return !pod->life.replica_set.empty() && !pod->leaving; });
    const bool one = way.pods.size() == 1;
    way.text += of_deployments == 0 ? (one ? " ends" : " end")
                : of_deployments == std::ssize(pods)
                    ? (one ? " is scaled down" : " are scaled down")
                    : " are gone";
    way.text += now;
    return way;
  }

  // The key of the first that the pod does not tolerate; "": none.
  std::string TakePassingTaints(NodeSpec& spec) const {
    std::string first;
    std::erase_if(spec.taints, [&](const Taint& taint) {
      const bool excludes =
          PassesByItself(taint) && !Tolerates(TolerationsOf(question_.pod), taint);
      if (excludes && first.empty()) first = taint.key;
      return excludes;
    });
    return first;
  }

  // What would have to become of the node itself, all of it together; where that is not enough,
  // which of its pods would have to end then.
  [[nodiscard]] WayIn NodeChange(NodeIndex index, const Node& node) {
    if (!MayGetWell(node.spec())) return {};
    NodeSpec spec = node.spec();
    WayIn way{"node_ready", "once ", {}};
    int changes = 0;
    const auto well = [&] {
      return Node(std::make_shared<const NodeSpec>(spec),
                  PodRecords(node.pods().begin(), node.pods().end()), node.claims());
    };
    const auto fits_once = [&](const std::string& text) {
      way.text += (changes++ > 0 ? " and " : "") + text;
      return FitsOn(index, well(), question_.pod);
    };
    const std::string passing = TakePassingTaints(spec);
    if (!std::exchange(spec.ready, true)) {
      if (fits_once("the node is ready")) return way;
    } else if (!passing.empty() && fits_once("its taint " + passing + " is gone")) {
      return way;
    }
    const std::string condition = std::exchange(spec.gpu_condition, "");
    if (!condition.empty() && fits_once("its condition " + condition + " clears")) return way;
    if (std::exchange(spec.refuses_gpu_pods, false) &&
        fits_once("its kubelet admits GPU pods again")) {
      return way;
    }
    if (std::exchange(spec.refused_asks, nullptr) != nullptr &&
        fits_once("its kubelet admits such pods again")) {
      return way;
    }
    const bool offers_none = OffersNoneOfItsGpus(spec);
    if (offers_none && spec.beside.in_slices > 0) return {};  // they are asked for by claims
    const int each = std::max(spec.places.each(), 1);
    int sick = (std::exchange(spec.missing, 0) + each - 1) / each;
    spec.places.unwell.clear();
    for (GpuSpec& gpu : spec.gpus) {
      sick += std::exchange(gpu.healthy, !gpu.foreign) || gpu.foreign ? 0 : 1;
    }
    if (sick > 0) {
      if (changes == 0) way.code = "gpus_well";
      const bool in_replicas = spec.places.count > 0 && spec.places.gpus == 0;
      const std::string are = sick == 1 ? " of it is" : " of it are";
      const std::string gpus = CountText(sick, in_replicas ? "GPU replica" : "GPU");
      if (fits_once(offers_none ? "its device plugin offers its " + gpus + " again"
                                : gpus + are + " healthy again")) {
        return way;
      }
    }
    way.code = "node_and_pods";
    const auto fits = [&](const Node& other) { return FitsOn(index, other, question_.pod); };
    const Node at_its_best = well();
    const auto gone = EndingPods(at_its_best, question_.pod.shape, fits);
    if (gone.empty()) return {};
    WayIn ending = Ending(gone);
    way.text += " and " + ending.text.substr(std::string_view("when ").size());
    way.pods = std::move(ending.pods);
    return way;
  }

  const Snapshot& snapshot_;
  const Question& question_;
  const std::span<const Reason> reasons_;
  // By candidate: the needs without which it would fit, if the pod's group did not matter.
  std::vector<NeedMask> without_;
  std::size_t judged_ = 0;
};

}  // namespace

std::vector<NearNode> NearNodes(const Snapshot& snapshot, const Question& question,
                                std::span<const Reason> reasons, std::size_t most) {
  return NearSearch(snapshot, question, reasons).Nearest(most);
}

}  // namespace berth
