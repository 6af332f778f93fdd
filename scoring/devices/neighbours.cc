// SPDX-License-Identifier: Apache-2.0
#include "scoring/devices/neighbours.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <iterator>
#include <map>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "scoring/devices/device_picker.h"

namespace berth {
namespace {

constexpr int kSteps = 8;  // more than any of the three has
constexpr int kNoGpu = -1;

// The GPUs of the pods that a selector selects.
struct Selected {
  bool any = false;
  GpuMask gpus = 0;
};

GpuMask GpusOf(const PodRecord& pod, GpuMask all) {
  const std::vector<DeviceGrant>& grants = pod.placement.grants;
  GpuMask gpus = GpusAmong(grants, kMaxGpusPerNode);
  if (std::ranges::any_of(grants, [](const DeviceGrant& grant) { return grant.gpu < 0; })) {
    gpus = all;
  }
  for (const MigGrant& grant : pod.placement.mig) {
    const bool known = grant.gpu >= 0 && grant.gpu < kMaxGpusPerNode;
    gpus |= known ? GpuBit(grant.gpu) : all;
  }
  return pod.unattributed() ? all : gpus & all;
}

// Those that the pod has by ResourceClaims of its own.
GpuMask GpusOfClaims(const Node& node, const PodRequest& pod) {
  if (pod.claims.empty() || node.claims() == nullptr) return 0;
  std::vector<ClaimedGpu> its;
  for (const std::string& name : pod.claims) {
    const std::string claim = pod.id.namespace_name + "/" + name;
    std::ranges::copy_if(*node.claims(), std::back_inserter(its),
                         [&claim](const ClaimedGpu& held) { return held.claim == claim; });
  }
  return HeldByClaims(node.spec(), its);
}

Selected PodsBeside(const Node& node, const std::string& namespace_name,
                    const LabelSelector& selector) {
  static const Labels kNoLabels;
  Selected selected;
  if (selector.empty()) return selected;
  const GpuMask all = AllGpus(static_cast<int>(node.gpus().size()));
  for (const auto& pod : node.pods()) {
    if (pod->leaving || pod->pod.id.namespace_name != namespace_name) continue;
    if (!pod->pod.shape.wants_gpu() && pod->pod.claims.empty()) continue;
    if (!Selects(selector, pod->pod.labels == nullptr ? kNoLabels : *pod->pod.labels)) continue;
    const GpuMask by_claims = GpusOfClaims(node, pod->pod);
    if (!pod->pod.shape.wants_gpu() && by_claims == 0) continue;
    selected.any = true;
    selected.gpus |= by_claims;
    if (pod->pod.shape.wants_gpu()) selected.gpus |= GpusOf(*pod, all);
  }
  return selected;
}

class Suitability {
 public:
  Suitability(const Node& node, const RequestShape& shape)
      : links_(node.spec().links),
        shape_(shape),
        near_(PodsBeside(node, shape.neighbours.namespace_name, shape.neighbours.near)),
        far_(PodsBeside(node, shape.neighbours.namespace_name, shape.neighbours.far)) {}

  // Of `far` and `near`. kNoGpu: of a GPU that somebody else chooses.
  [[nodiscard]] int Penalty(int gpu) const { return FarPenalty(gpu) * kSteps + NearPenalty(gpu); }
  // With the NIC. Less is better.
  [[nodiscard]] int All(int gpu) const { return Penalty(gpu) * kSteps + NicPenalty(gpu); }

 private:
  [[nodiscard]] int FarPenalty(int gpu) const {
    if (!far_.any) return 0;
    if (gpu != kNoGpu && (far_.gpus & GpuBit(gpu)) != 0) return 3;
    if (gpu == kNoGpu || !links_.known()) return 2;
    const Surroundings& around = links_.around(gpu);
    if ((far_.gpus & around.root) != 0) return 2;
    return (far_.gpus & around.numa) != 0 ? 1 : 0;
  }
  [[nodiscard]] int NearPenalty(int gpu) const {
    if (shape_.neighbours.near.empty()) return 0;
    if (!near_.any) return 4;
    if (gpu != kNoGpu && (near_.gpus & GpuBit(gpu)) != 0) return 0;
    if (gpu == kNoGpu || !links_.known()) return 3;
    const Surroundings& around = links_.around(gpu);
    if ((near_.gpus & around.fabric) != 0) return 0;
    if ((near_.gpus & around.root) != 0) return 1;
    return (near_.gpus & around.numa) != 0 ? 2 : 3;
  }
  [[nodiscard]] int NicPenalty(int gpu) const {
    if (!shape_.beside_nic || !links_.known() || links_.matrix().nics.empty()) return 0;
    const LinkType nic = links_.around(gpu).nic;
    if (nic >= LinkType::kPxb) return 0;
    return nic > LinkType::kSys ? 1 : 2;
  }

  const GpuLinks& links_;
  const RequestShape& shape_;
  const Selected near_, far_;
};

// The GPUs by what `penalty_of` says of each.
template <class PenaltyOf>
std::map<int, GpuMask> ByPenalty(GpuMask gpus, PenaltyOf penalty_of) {
  std::map<int, GpuMask> by_penalty;
  ForEachGpu(gpus, [&](int gpu) { by_penalty[penalty_of(gpu)] |= GpuBit(gpu); });
  return by_penalty;
}

// Whether a pod of that shape finds its GPUs there.
bool Suffices(const GpuLinks& links, GpuMask gpus, const RequestShape& shape) {
  const int count = shape.gpu_count();
  if (std::popcount(gpus) < count) return false;
  return count < 2 || !shape.links.limits() || !links.known() ||
         links.Choose(gpus, count, shape.links) != 0;
}

// Of the pods of the workload on the node, those for which `counts` holds.
template <class Counts>
int PodsOf(const Node& node, const RequestShape& shape, Counts counts) {
  return static_cast<int>(std::ranges::count_if(node.pods(), [&](const auto& pod) {
    return pod->pod.shape.workload == shape.workload && counts(*pod);
  }));
}

}  // namespace

std::vector<GpuMask> BySuitability(const Node& node, GpuMask free, const RequestShape& shape) {
  if (!MindsNeighbours(shape)) return {free};
  const Suitability suitability(node, shape);
  std::vector<GpuMask> sets;
  GpuMask so_far = 0;
  for (const auto& [penalty, gpus] :
       ByPenalty(free, [&](int gpu) { return suitability.All(gpu); })) {
    sets.push_back(so_far |= gpus);
  }
  return sets;
}

bool HasNeighbours(const Node& node, const RequestShape& shape) {
  const auto has = [&](const LabelSelector& selector) {
    return PodsBeside(node, shape.neighbours.namespace_name, selector).any;
  };
  return has(shape.neighbours.near) || has(shape.neighbours.far);
}

GpuMask ChooseSuiting(const Node& node, GpuMask free, const RequestShape& shape,
                      std::span<const GpuMask> tenants) {
  for (const GpuMask suiting : BySuitability(node, free, shape)) {
    const GpuMask chosen =
        node.spec().links.Choose(suiting, shape.gpu_count(), shape.links, tenants);
    if (chosen != 0) return chosen;
  }
  return 0;
}

int NeighbourPenalty(const Node& node, const RequestShape& shape) {
  if (shape.neighbours.empty()) return 0;
  const Suitability suitability(node, shape);
  if (shape.gpu_count() > 0 && !node.gpus().empty()) {
    GpuMask so_far = 0;
    for (const auto& [penalty, gpus] :
         ByPenalty(FreeGpus(node, shape), [&](int gpu) { return suitability.Penalty(gpu); })) {
      so_far |= gpus;
      if (Suffices(node.spec().links, so_far, shape)) return penalty;
    }
  }
  return suitability.Penalty(kNoGpu);
}

std::string TextOfPenalty(int penalty) {
  constexpr std::array<std::string_view, 4> kFar = {"", "a NUMA group", "a PCIe root", "a GPU"};
  constexpr std::array<std::string_view, 5> kNear = {"", "the PCIe root alone",
                                                     "the NUMA group alone", "the node alone", ""};
  const auto far = static_cast<std::size_t>(penalty / kSteps);
  const auto near = static_cast<std::size_t>(penalty % kSteps);
  std::string text;
  if (far > 0) text = "shares " + std::string(kFar[far]) + " with pods that it should be far from";
  if (near == 0) return text;
  if (far > 0) text += ", ";
  if (near + 1 == kNear.size()) return text + "has none of the pods that it should be near";
  return text + "shares " + std::string(kNear[near]) + " with pods that it should be near";
}

int CrowdOnGpu(const Node& node, int gpu, const RequestShape& shape) {
  if (shape.spread != Spread::kCard) return 0;
  return PodsOf(node, shape, [gpu](const PodRecord& pod) {
    return std::ranges::find(pod.placement.grants, gpu, &DeviceGrant::gpu) !=
               pod.placement.grants.end() ||
           std::ranges::find(pod.placement.places_on, gpu) != pod.placement.places_on.end();
  });
}

int CrowdOnGpus(const Node& node, GpuMask gpus, const RequestShape& shape) {
  std::vector<int> crowds;
  ForEachGpu(gpus, [&](int gpu) { crowds.push_back(CrowdOnGpu(node, gpu, shape)); });
  const auto last = static_cast<std::size_t>(shape.gpu_count()) - 1;
  BERTH_CHECK(last < crowds.size());
  std::ranges::nth_element(crowds, crowds.begin() + static_cast<std::ptrdiff_t>(last));
  return crowds[last];
}

int CrowdOn(const Node& node, const RequestShape& shape) {
  if (shape.spread == Spread::kNone) return 0;
  if (shape.spread == Spread::kCard) {
    if (shape.is_share()) return CrowdOnGpus(node, FreeGpus(node, shape), shape);
    const bool whole = std::holds_alternative<WholeGpus>(shape.gpus);
    if (whole && !node.spec().gives_parts()) return 0;
  }
  return PodsOf(node, shape, [](const PodRecord&) { return true; });
}

int Behind::rank() const {
  constexpr int kPods = 1 << 20;  // more than of a workload on a node
  return ((gives_parts ? kPods : 0) + crowd) * (kMostPenalty + 1) + penalty;
}

std::string Behind::text() const {
  std::vector<std::string> texts;
  if (gives_parts) {
    texts.emplace_back("hands out GPU shares, and the pod does not say which isolation it needs");
  }
  if (crowd > 0) {
    texts.push_back("has " + std::to_string(crowd) + (crowd == 1 ? " pod" : " pods") +
                    std::string(" that it should be spread from"));
  }
  if (penalty > 0) texts.push_back(TextOfPenalty(penalty));
  return Join(texts, ", ");
}

bool MayPutBehind(const RequestShape& shape) {
  return shape.is_plain() || shape.spread != Spread::kNone || !shape.neighbours.empty();
}

Behind BehindOn(const Node& node, const RequestShape& shape) {
  return {shape.is_plain() && node.spec().gives_parts(), CrowdOn(node, shape),
          NeighbourPenalty(node, shape)};
}

}  // namespace berth
