// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/waves/scenario.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "base/check.h"
#include "cluster/node/mig_library.h"
#include "topology/mig/mig_product.h"

namespace berth::replay {
namespace {

constexpr std::int64_t kGibBytes = std::int64_t{1} << 30;
constexpr const char* kMigProduct = "A100-40GB";

NodeSpec ANode(std::size_t number, const std::string& model, int gpus) {
  NodeSpec node;
  node.name = "node-" + std::to_string(number);
  node.gpu_model = model;
  node.cpu_milli = std::int64_t{12'000} * gpus;
  node.memory_bytes = 64 * kGibBytes * gpus;
  node.gpus.resize(static_cast<std::size_t>(gpus));
  return node;
}

std::vector<NodeSpec> Homogeneous() {
  std::vector<NodeSpec> nodes;
  for (std::size_t i = 0; i < 8; ++i) nodes.push_back(ANode(i, "A100-SXM4-40GB", 8));
  return nodes;
}

// As many GPUs, of three kinds of node.
std::vector<NodeSpec> Mixed() {
  std::vector<NodeSpec> nodes;
  for (std::size_t i = 0; i < 4; ++i) nodes.push_back(ANode(i, "A100-SXM4-40GB", 8));
  for (std::size_t i = 4; i < 6; ++i) nodes.push_back(ANode(i, "V100-SXM2-32GB", 8));
  for (std::size_t i = 6; i < 10; ++i) nodes.push_back(ANode(i, "T4", 4));
  return nodes;
}

// Every GPU is partitioned: when a pod arrives, or beforehand into seven.
std::vector<NodeSpec> Cut(bool dynamic) {
  std::vector<NodeSpec> nodes;
  const auto product = MigLibrary::Catalogued(*FindMigProduct(kMigProduct));
  for (std::size_t i = 0; i < 8; ++i) {
    MigSpec mig;
    mig.product = product;
    for (int gpu = 0; gpu < 8; ++gpu) mig.gpus.push_back({gpu, "", 0});
    mig.dynamic = dynamic;
    mig.knowledge = dynamic ? MigKnowledge::kExact : MigKnowledge::kCounts;
    mig.allocator = dynamic ? MigAllocator::kBerth : MigAllocator::kFirstFit;
    const int row = *product->RowOf(*ParseMigProfile("1g.5gb"));
    for (MigGpu& gpu : mig.gpus) {
      for (int start = 0; start < 7 && !dynamic; ++start) {
        gpu.instances |= MigSet{1} << *product->PlacementAt(row, start);
      }
    }
    NodeSpec node = ANode(i, kMigProduct, 8);
    node.gpus.clear();
    node.mig = NodeMig(std::move(mig));
    nodes.push_back(std::move(node));
  }
  return nodes;
}

GpuAsk Mig(const std::string& profile) {
  return MigSlices{{{*ParseMigProfile(profile), false, 0, 0, 1}}};
}

// How many pods of one profile a GPU takes.
int MigPodsPerGpu(const MigSlices& ask) {
  static const std::map<std::string, int> kPerGpu = {
      {"1g.5gb", 7}, {"2g.10gb", 3}, {"3g.20gb", 2}, {"7g.40gb", 1}};
  return kPerGpu.at(MigProfileName(*ask.wants.front().profile));
}

// `gpus` of each pod, for its CPU and memory.
RequestShape APod(GpuAsk ask, double gpus, double cores_per_gpu) {
  RequestShape shape;
  shape.cpu_milli = static_cast<std::int64_t>(1000 * gpus * cores_per_gpu);
  shape.memory_bytes =
      static_cast<std::int64_t>(static_cast<double>(4 * kGibBytes) * gpus * cores_per_gpu);
  shape.gpus = std::move(ask);
  return shape;
}

double DrawCores(Random& random) {
  static constexpr std::array<double, 4> kCoreRatios = {0.5, 2, 5, 10};
  return kCoreRatios[random.Below(kCoreRatios.size())];
}

Wave Equal(int count, const GpuAsk& ask, double gpus, const std::string& what, Random& random) {
  const RequestShape pod = APod(ask, gpus, DrawCores(random));
  return {std::to_string(count) + " x " + what,
          std::vector<RequestShape>(static_cast<std::size_t>(count), pod)};
}

Wave OfWhole(int count, int gpus, Random& random) {
  return Equal(count, WholeGpus{gpus}, gpus, std::to_string(gpus) + " GPUs", random);
}

Wave OfShares(int count, int milli, Random& random) {
  return Equal(count, GpuShare{milli, 0}, milli / 1000.0, std::to_string(milli) + "m", random);
}

// Shares of three sizes, in any order.
Wave OfMixedShares(int count, Random& random) {
  static constexpr std::array<int, 3> kMilli = {200, 300, 500};
  Wave wave{std::to_string(count) + " x 200m, 300m or 500m", {}};
  const double cores = DrawCores(random);
  for (int i = 0; i < count; ++i) {
    const int milli = kMilli[random.Below(kMilli.size())];
    wave.pods.push_back(APod(GpuShare{milli, 0}, milli / 1000.0, cores));
  }
  return wave;
}

Wave OfMig(int count, const std::string& profile, double gpus, Random& random) {
  return Equal(count, Mig(profile), gpus, profile, random);
}

std::vector<Wave> Whole(Random& random) {
  return {OfWhole(12, 2, random), OfWhole(20, 1, random), OfWhole(6, 4, random),
          OfWhole(9, 1, random),  OfWhole(5, 2, random),  OfWhole(3, 4, random),
          OfWhole(7, 1, random),  OfWhole(16, 2, random), OfWhole(2, 8, random)};
}

std::vector<Wave> ShareWaves(Random& random) {
  return {OfShares(40, 250, random), OfShares(24, 500, random), OfShares(30, 300, random),
          OfShares(20, 700, random), OfMixedShares(40, random), OfMixedShares(70, random)};
}

Scenario Make(std::string name, std::vector<NodeSpec> nodes, std::vector<Wave> waves, bool stay,
              Random& random) {
  random.Shuffle(waves);
  return {std::move(name), std::move(nodes), std::move(waves), stay};
}

// Sizes of whole GPUs, the shares of one GPU together as one.
std::vector<int> GpusTaken(const std::vector<RequestShape>& pods) {
  std::vector<int> sizes, shares;
  std::map<std::string, int> mig;
  for (const RequestShape& pod : pods) {
    if (pod.mig() != nullptr) {
      ++mig[MigProfileName(*pod.mig()->wants.front().profile)];
    } else if (pod.is_share()) {
      shares.push_back(pod.milli_per_gpu());
    } else {
      sizes.push_back(pod.gpu_count());
    }
  }
  std::ranges::sort(shares, std::greater<>());
  std::vector<int> gpus;  // what is free on them
  for (const int milli : shares) {
    const auto room = std::ranges::find_if(gpus, [&](int free) { return free >= milli; });
    if (room != gpus.end()) {
      *room -= milli;
    } else {
      gpus.push_back(kMilliPerGpu - milli);
    }
  }
  sizes.insert(sizes.end(), gpus.size(), 1);
  for (const auto& [profile, count] : mig) {
    const int per_gpu = MigPodsPerGpu({{{*ParseMigProfile(profile), false, 0, 0, 1}}});
    sizes.insert(sizes.end(), static_cast<std::size_t>((count + per_gpu - 1) / per_gpu), 1);
  }
  std::ranges::sort(sizes, std::greater<>());
  return sizes;
}

bool Fits(std::vector<int> free, const std::vector<int>& sizes) {
  return std::ranges::all_of(sizes, [&](int size) {
    // The least that suffices.
    auto best = free.end();
    for (auto it = free.begin(); it != free.end(); ++it) {
      if (*it >= size && (best == free.end() || *it < *best)) best = it;
    }
    if (best == free.end()) return false;
    *best -= size;
    return true;
  });
}

}  // namespace

int GpusOf(const NodeSpec& node) {
  return static_cast<int>(node.gpus.size() + (node.mig.known() ? node.mig->gpus.size() : 0));
}

int MostWholeGpus(const std::vector<NodeSpec>& nodes, const std::vector<RequestShape>& pods) {
  const std::vector<int> sizes = GpusTaken(pods);
  std::map<int, int> nodes_of;  // by GPUs
  for (const NodeSpec& node : nodes) ++nodes_of[GpusOf(node)];
  BERTH_CHECK(nodes_of.size() <= 2);
  const auto [small, smalls] = *nodes_of.begin();
  const auto [large, larges] = *nodes_of.rbegin();
  int most = 0;
  for (int used_small = 0; used_small <= smalls; ++used_small) {
    for (int used_large = 0; used_large <= (small == large ? 0 : larges); ++used_large) {
      std::vector<int> free(static_cast<std::size_t>(used_small), small);
      free.insert(free.end(), static_cast<std::size_t>(used_large), large);
      if (!Fits(std::move(free), sizes)) continue;
      const int rest = small == large ? 0 : (larges - used_large) * large;
      most = std::max(most, (smalls - used_small) * small + rest);
    }
  }
  return most;
}

std::vector<Scenario> DrawScenarios(std::uint64_t seed) {
  Random random(seed);
  std::vector<Scenario> scenarios;
  for (const bool mixed : {false, true}) {
    const std::vector<NodeSpec> nodes = mixed ? Mixed() : Homogeneous();
    const std::string fleet = mixed ? ", mixed fleet" : "";
    scenarios.push_back(Make("whole GPUs" + fleet, nodes, Whole(random), false, random));
    scenarios.push_back(Make("shares" + fleet, nodes, ShareWaves(random), false, random));
    std::vector<Wave> all = Whole(random);
    for (Wave& wave : ShareWaves(random)) all.push_back(std::move(wave));
    scenarios.push_back(
        Make("whole GPUs and shares" + fleet, nodes, std::move(all), false, random));
    scenarios.push_back(Make("whole GPUs that stay" + fleet, nodes,
                             {OfWhole(9, 1, random), OfWhole(5, 2, random), OfWhole(3, 4, random),
                              OfWhole(7, 1, random)},
                             true, random));
    scenarios.push_back(Make("shares and GPUs that stay" + fleet, nodes,
                             {OfShares(10, 500, random), OfShares(12, 250, random),
                              OfWhole(4, 2, random), OfWhole(11, 1, random)},
                             true, random));
  }
  scenarios.push_back(Make("MIG, cut on demand", Cut(true),
                           {OfMig(40, "1g.5gb", 0.14, random), OfMig(20, "2g.10gb", 0.3, random),
                            OfMig(30, "3g.20gb", 0.5, random), OfMig(12, "7g.40gb", 1, random)},
                           false, random));
  scenarios.push_back(Make("MIG, cut before", Cut(false),
                           {OfMig(40, "1g.5gb", 0.14, random), OfMig(100, "1g.5gb", 0.14, random),
                            OfMig(200, "1g.5gb", 0.14, random)},
                           false, random));
  return scenarios;
}

}  // namespace berth::replay
