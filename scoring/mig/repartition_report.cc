// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/repartition_report.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "cluster/values/alike.h"
#include "scoring/admission.h"
#include "topology/mig/mig_product.h"
#include "topology/mig/mig_states.h"

namespace berth {
namespace {

// Pods that are alike in everything that decides where they may go.
struct WaitingKind {
  const PodRequest* pod;
  MigProfile profile;
  int waiting = 0;
};

std::vector<WaitingKind> KindsOf(std::span<const std::shared_ptr<const PodRequest>> waiting) {
  std::vector<WaitingKind> kinds;
  for (const auto& pod : waiting) {
    const MigSlices* const ask = pod->shape.mig();
    if (!pod->refusal.empty() || ask == nullptr || !ask->by_name() || ask->count() != 1) continue;
    if (ask->wants.front().shared) continue;
    const auto known = std::ranges::find_if(
        kinds, [&pod](const WaitingKind& kind) { return SamePodKind(*kind.pod, *pod); });
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
int RoomFor(const Node& node, const WaitingKind& kind) {
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
  NodeAdviser(const Node& node, std::vector<WaitingKind>& kinds)
      : node_(node),
        product_(*node.spec().mig->product),
        gpus_(static_cast<int>(node.spec().mig->gpus.size())),
        kinds_(kinds),
        waiting_(product_.rows().size()),
        now_(product_.rows().size()) {}

  std::optional<NodeAdvice> Advise() {
    for (const WaitingKind& kind : kinds_) {
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
  [[nodiscard]] std::optional<std::size_t> RowFor(const WaitingKind& kind) const {
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
    for (WaitingKind& kind : kinds_) {
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
  std::vector<WaitingKind>& kinds_;
  std::vector<int> waiting_, now_;
};

// The row without extension of so many compute slices and memory units.
std::optional<std::size_t> PlainRow(const MigProduct& product, int slices, int units) {
  for (std::size_t r = 0; r < product.rows().size(); ++r) {
    const MigRow& row = product.rows()[r];
    if (row.profile.extension == MigExtension::kNone && row.profile.compute_slices == slices &&
        row.memory_units == units) {
      return r;
    }
  }
  return std::nullopt;
}

std::optional<MigConfig> AllBalanced(const MigProduct& product) {
  struct Part {
    int slices, units, count;
  };
  std::vector<Part> parts;
  if (product.memory_units() == 8) parts = {{1, 1, 2}, {2, 2, 1}, {3, 4, 1}};
  if (product.memory_units() == 4) parts = {{1, 1, 2}, {2, 2, 1}};
  if (parts.empty()) return std::nullopt;
  MigConfig config{"all-balanced", std::vector<int>(product.rows().size())};
  for (const Part& part : parts) {
    const auto row = PlainRow(product, part.slices, part.units);
    if (!row) return std::nullopt;
    config.instances[*row] = part.count;
  }
  return config;
}

struct Use {
  int pods = 0;
  int units = 0;
};

// What the waiting pods take of so many instances per row.
Use UseOf(const MigProduct& product, std::span<const int> waiting, std::span<const int> instances) {
  Use use;
  for (std::size_t r = 0; r < waiting.size(); ++r) {
    const int pods = std::min(waiting[r], instances[r]);
    use.pods += pods;
    use.units += pods * product.rows()[r].memory_units;
  }
  return use;
}

// The number of pods that fit if GPUs are partitioned freely: small ones first, since each leaves
// room for the most others.
std::optional<int> FitCutAtWill(const MigProduct& product, int gpus, std::span<const int> waiting) {
  std::vector<std::size_t> rows(waiting.size());
  std::iota(rows.begin(), rows.end(), 0U);
  std::ranges::stable_sort(rows, {}, [&](std::size_t r) { return product.rows()[r].memory_units; });
  std::vector<int> placed(waiting.size());
  for (const std::size_t r : rows) {
    if (waiting[r] == 0) continue;
    const auto room = MigRoomFor(product, placed, static_cast<int>(r), gpus);
    if (!room) return std::nullopt;
    placed[r] = std::min(waiting[r], *room);
  }
  return std::accumulate(placed.begin(), placed.end(), 0);
}

// all_profiles: includes those without taken or free devices.
void CountPlacements(const MigProduct& product, MigSet taken, MigSet free, bool all_profiles,
                     MigProductCount& count) {
  count.units += product.memory_units();
  for (int row = 0; row < static_cast<int>(product.rows().size()); ++row) {
    const MigSet placements = product.PlacementsOf(row);
    if (((taken | free) & placements) == 0 && !all_profiles) continue;
    const MigProfile& profile = product.row(row).profile;
    MigProfileCount& counts = count.profiles[MigProfileName(profile)];
    counts.taken += std::popcount(taken & placements);
    counts.free += std::popcount(free & placements);
  }
}

void CountGpu(const MigSpec& spec, std::size_t gpu, MigSet taken, MigProductCount& count) {
  (spec.dynamic ? count.dynamic_gpus : count.static_gpus) += 1;
  count.taken_units += std::popcount(spec.product->UnitsOf(taken));
  CountPlacements(*spec.product, taken, spec.Free(gpu, taken), spec.dynamic, count);
}

void CountOffered(const OfferedGpu& gpu, MigProductCount& count) {
  count.dra_gpus += 1;
  count.taken_units +=
      gpu.whole ? gpu.product->memory_units() : std::popcount(gpu.product->UnitsOf(gpu.taken));
  CountPlacements(*gpu.product, gpu.taken, gpu.Free(), true, count);
}

}  // namespace

std::vector<NodeAdvice> AdviseNodes(const Snapshot& snapshot,
                                    std::span<const std::shared_ptr<const PodRequest>> waiting) {
  std::vector<NodeAdvice> advices;
  std::vector<WaitingKind> kinds = KindsOf(waiting);
  const auto none_left = [&kinds] {
    return std::ranges::none_of(kinds, [](const WaitingKind& kind) { return kind.waiting > 0; });
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

std::vector<MigConfig> StandardMigConfigs(const MigProduct& product) {
  std::vector<MigConfig> configs;
  for (std::size_t r = 0; r < product.rows().size(); ++r) {
    // mig-manager writes '.' for '+', as in a resource's name.
    const std::string resource = MigResourceName(product.rows()[r].profile);
    MigConfig config{"all-" + resource.substr(kMigResourcePrefix.size()),
                     std::vector<int>(product.rows().size())};
    config.instances[r] = product.rows()[r].max_instances;
    configs.push_back(std::move(config));
  }
  if (auto balanced = AllBalanced(product)) configs.push_back(*std::move(balanced));
  return configs;
}

std::optional<RepartitionAdvice> AdviseRepartition(const MigProduct& product, int gpus,
                                                   std::span<const int> waiting,
                                                   std::span<const int> now) {
  BERTH_CHECK(waiting.size() == product.rows().size() && now.size() == waiting.size());
  BERTH_CHECK(gpus >= 1);
  RepartitionAdvice advice;
  advice.fits_now = UseOf(product, waiting, now).pods;
  Use best;
  for (const MigConfig& config : StandardMigConfigs(product)) {
    std::vector<int> instances = config.instances;
    for (int& count : instances) count *= gpus;
    const Use use = UseOf(product, waiting, instances);
    if (std::tie(use.pods, use.units) <= std::tie(best.pods, best.units)) continue;
    best = use;
    advice.config = config.name;
    advice.fits = use.pods;
  }
  if (advice.fits <= advice.fits_now) return std::nullopt;
  if (const auto fits = FitCutAtWill(product, gpus, waiting)) {
    advice.fits_cut_at_will = std::max(*fits, advice.fits);
  }
  return advice;
}

MigReport ReportMig(const Snapshot& snapshot, const MigOffers::ByNode& offers) {
  MigReport report;
  for (const MigTrouble trouble :
       {MigTrouble::kChanging, MigTrouble::kFailed, MigTrouble::kInvalid, MigTrouble::kStale}) {
    report.troubled_nodes[std::string(MigTroubleName(trouble))] = 0;
  }
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (!node.spec().mig.known()) continue;
    const MigSpec& spec = *node.spec().mig;
    if (spec.trouble != MigTrouble::kNone) {
      ++report.troubled_nodes[std::string(MigTroubleName(spec.trouble))];
    }
    if (spec.by_claims()) continue;  // they are among the offers
    for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) {
      CountGpu(spec, gpu, node.mig().taken()[gpu], report.products[spec.product->name()]);
    }
  }
  for (const auto& [node, gpus] : offers) {
    for (const OfferedGpu& gpu : *gpus) CountOffered(gpu, report.products[gpu.product->name()]);
  }
  return report;
}

}  // namespace berth
