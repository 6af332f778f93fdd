// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/repartition_report.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "cluster/values/alike.h"
#include "scoring/admission.h"
#include "topology/mig/mig_catalog.h"

namespace berth {
namespace {

// Pods that are alike in everything that decides where they may go.
struct Kind {
  const PodRequest* pod;
  MigProfile profile;
  int waiting = 0;
};

std::vector<Kind> KindsOf(std::span<const std::shared_ptr<const PodRequest>> waiting) {
  std::vector<Kind> kinds;
  for (const auto& pod : waiting) {
    const MigSlices* const ask = pod->shape.mig();
    if (!pod->refusal.empty() || ask == nullptr || !ask->by_name() || ask->count() != 1) continue;
    if (ask->wants.front().shared) continue;
    const auto known = std::ranges::find_if(
        kinds, [&pod](const Kind& kind) { return SamePodKind(*kind.pod, *pod); });
    if (known != kinds.end()) {
      ++known->waiting;
    } else if (kinds.size() < kMostWaitingKinds) {
      kinds.push_back({pod.get(), *ask->wants.front().profile, 1});
    }
  }
  return kinds;
}

// Whether the node could be repartitioned as a whole without evicting anything.
bool IsIdle(const Node& node) {
  if (!node.spec().mig.known() || !node.spec().ready || !node.spec().gpus.empty()) return false;
  if (node.spec().places.count > 0) return false;
  const MigSpec& spec = *node.spec().mig;
  if (spec.gpus.empty() || spec.dynamic || spec.foreign || spec.fixed || !spec.shared.empty())
    return false;
  if (spec.trouble != MigTrouble::kNone || FindMigProduct(spec.product->name()) == nullptr) {
    return false;
  }
  const auto is_taken = [](MigSet taken) { return taken != 0; };
  if (std::ranges::any_of(node.mig().taken(), is_taken)) return false;  // by claims, too
  return std::ranges::none_of(node.pods(),
                              [](const auto& held) { return held->pod.shape.wants_gpu(); });
}

// How many of the kind the node's free CPU, memory and disk suffice for.
int RoomFor(const Node& node, const Kind& kind) {
  std::int64_t room = kind.waiting;
  const RequestShape& shape = kind.pod->shape;
  if (shape.cpu_milli > 0) room = std::min(room, node.free_cpu_milli() / shape.cpu_milli);
  if (shape.memory_bytes > 0) room = std::min(room, node.free_memory_bytes() / shape.memory_bytes);
  if (shape.ephemeral_bytes > 0) {
    room = std::min(room, node.free_ephemeral_bytes() / shape.ephemeral_bytes);
  }
  return static_cast<int>(std::max<std::int64_t>(room, 0));
}

class NodeAdviser {
 public:
  NodeAdviser(const Node& node, std::vector<Kind>& kinds)
      : node_(node),
        product_(*node.spec().mig->product),
        gpus_(static_cast<int>(node.spec().mig->gpus.size())),
        kinds_(kinds),
        waiting_(product_.rows().size()),
        now_(product_.rows().size()) {}

  std::optional<NodeAdvice> Advise() {
    for (const Kind& kind : kinds_) {
      const auto row = RowFor(kind);
      if (row) waiting_[*row] += RoomFor(node_, kind);
    }
    if (std::ranges::count(waiting_, 0) == std::ssize(waiting_)) return std::nullopt;
    for (const MigGpu& gpu : node_.spec().mig->gpus) {
      for (std::size_t row = 0; row < now_.size(); ++row) {
        now_[row] += std::popcount(gpu.instances & product_.PlacementsOf(static_cast<int>(row)));
      }
    }
    auto advice = AdviseRepartition(product_, gpus_, waiting_, now_);
    if (!advice) return std::nullopt;
    Serve(advice->config);
    return NodeAdvice{node_.spec().name, product_.name(), gpus_, *std::move(advice)};
  }

 private:
  // Where the pods may go to the node, and its product has their profile.
  [[nodiscard]] std::optional<std::size_t> RowFor(const Kind& kind) const {
    const auto row = product_.RowOf(kind.profile);
    if (kind.waiting == 0 || !row || !kind.pod->shape.Admits(node_.spec().gpu_model) ||
        Admits(node_.spec(), *kind.pod) != Reason::kFits) {
      return std::nullopt;
    }
    return static_cast<std::size_t>(*row);
  }

  // The pods that the layout would take count for no other node.
  void Serve(const std::string& name) {
    const std::vector<MigConfig> configs = StandardMigConfigs(product_);
    std::vector<int> left = std::ranges::find(configs, name, &MigConfig::name)->instances;
    for (int& instances : left) instances *= gpus_;
    for (Kind& kind : kinds_) {
      const auto row = RowFor(kind);
      if (!row) continue;
      const int served = std::min(left[*row], RoomFor(node_, kind));
      left[*row] -= served;
      kind.waiting -= served;
    }
  }

  const Node& node_;
  const MigProduct& product_;
  const int gpus_;
  std::vector<Kind>& kinds_;
  std::vector<int> waiting_, now_;
};

}  // namespace

std::vector<NodeAdvice> AdviseNodes(const Snapshot& snapshot,
                                    std::span<const std::shared_ptr<const PodRequest>> waiting) {
  std::vector<NodeAdvice> advices;
  std::vector<Kind> kinds = KindsOf(waiting);
  const auto none_left = [&kinds] {
    return std::ranges::none_of(kinds, [](const Kind& kind) { return kind.waiting > 0; });
  };
  for (NodeIndex i = 0; i < snapshot.size() && !none_left(); ++i) {
    if (!IsIdle(snapshot.node(i))) continue;
    if (auto advice = NodeAdviser(snapshot.node(i), kinds).Advise()) {
      advices.push_back(*std::move(advice));
    }
  }
  return advices;
}

std::string TextOf(const NodeAdvice& advice) {
  return "node " + advice.node + " to " + advice.advice.config + ": " +
         std::to_string(advice.advice.fits) + " waiting pods fit, " +
         std::to_string(advice.advice.fits_now) + " with its present partitioning";
}

}  // namespace berth
