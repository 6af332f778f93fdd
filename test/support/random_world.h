// SPDX-License-Identifier: Apache-2.0
//
// Random nodes, pods and profiles for property tests: small, and rich in the odd cases (unhealthy
// GPUs, unknown memory, pods bound past the capacity). Same seed, same world: with every compiler,
// so no expression draws twice.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cluster/state/cluster_state.h"
#include "scoring/profile.h"
#include "scoring/registry.h"
#include "test/support/builders.h"
#include "test/support/wirings.h"

namespace berth::test {

class RandomWorld {
 public:
  explicit RandomWorld(std::uint64_t seed) : random_(seed) {}

  // In [low, high].
  int Between(int low, int high) {
    return low + static_cast<int>(random_.Below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool Chance(int percent) { return Between(1, 100) <= percent; }
  template <class T>
  const T& OneOf(const std::vector<T>& values) {
    return values[random_.Below(values.size())];
  }
  template <class T>
  void Shuffle(std::vector<T>& values) {
    random_.Shuffle(values);
  }

  NodeSpec ANodeNamed(const std::string& name) {
    ANode node(name);
    node.Cpu(Between(0, 64));
    node.MemoryGib(Between(0, 128));
    node.Model(OneOf<std::string>({"", "A100", "T4"}));
    const int gpus = OneOf<int>({0, 1, 2, 4, 8});
    node.Gpus(gpus, OneOf<std::int64_t>({0, 8000, 16'000}));
    if (Chance(50)) node.Named();
    for (std::size_t gpu = 0; gpu < node.Spec().gpus.size(); ++gpu) {
      if (Chance(10)) node.Unhealthy(gpu);
      if (Chance(10)) node.GpuMemory(gpu, 11'019);
    }
    if (Chance(5)) node.NotReady();
    if (!node.Spec().gpus.empty() && Chance(30)) {
      node.Linked(LinksOfSome(node.Spec().gpus.size()));
      if (Chance(40)) {
        const auto policy = static_cast<TopologyPolicy>(Between(0, 3));
        node.Kubelet(policy, Chance(30));
      }
    }
    if (node.Spec().gpus.empty() && Chance(30)) {
      // One draw a statement: in which order arguments are computed is up to the compiler.
      const int places = Between(1, 20);
      node.Places(places, Chance(10));
      node.Missing(Between(0, 1));
    } else if (AllAlike(node.Spec()) && Chance(20)) {
      node.Missing(Between(1, gpus));
    }
    if (Chance(40)) node.DiskGib(Between(0, 64));
    return node.Spec();
  }

  // Whether any GPU may be the one that is out of order: it then makes no difference which is.
  static bool AllAlike(const NodeSpec& spec) {
    return !spec.gpus.empty() && !spec.links.known() &&
           std::ranges::all_of(spec.gpus, [&spec](const GpuSpec& gpu) {
             return gpu.memory_mib == spec.gpus.front().memory_mib;
           });
  }

  // Of a few machines, whose tables are built once.
  GpuLinks LinksOfSome(std::size_t gpus) {
    static std::map<std::pair<std::size_t, int>, GpuLinks> machines;
    const int kind = Between(1, 5);
    GpuLinks& links = machines[{gpus, kind}];
    if (!links.known()) {
      // Not of this world's seed, since other worlds have the same machines.
      Random own(gpus * 31 + static_cast<std::size_t>(kind));
      links = LinksOf(RandomMatrix(own, static_cast<int>(gpus)));
    }
    return links;
  }

  RequestShape AShape() {
    APod pod("shape");
    pod.CpuMilli(Between(0, 8) * 500);
    pod.MemoryGib(Between(0, 8));
    const int kind = Between(0, 9);
    if (kind <= 2) {
      const int gpus = OneOf<int>({1, 1, 2, 4, 8});
      const bool in_two = gpus > 1 && Chance(30);
      in_two ? pod.InSteps(gpus, {{1}, {gpus - 1}}) : pod.Whole(gpus);
    }
    if (kind <= 2 && Chance(30)) {
      // The initialisers of a braced list are evaluated in order.
      pod.Links({.link = OneOf<LinkWish>({LinkWish::kPreferred, LinkWish::kRequired}),
                 .numa = OneOf<NumaWish>({NumaWish::kAmongEquals, NumaWish::kRequired}),
                 .pattern = OneOf<LinkPattern>({LinkPattern::kAny, LinkPattern::kPairs})});
    }
    if (kind >= 3 && kind <= 5) pod.Share(Between(1, 1000));
    if (kind == 6) pod.ShareByMemory(Between(1, 12'000));
    if (kind == 7) {
      const int milli = Between(1, 1000);
      pod.Share(milli, Between(1, 12'000));
    }
    if (kind == 8) {
      const int count = Between(2, 3), milli = Between(0, 5) * 100;
      pod.Shares(count, milli, milli == 0 || Chance(50) ? Between(1, 8000) : 0);
    }
    if (kind <= 8 && Chance(10)) pod.NotOnGpus({"GPU-1"});
    if (Chance(15)) pod.Models(OneOf<std::vector<std::string>>({{"A100"}, {"A100", "T4"}}));
    if (Chance(40)) pod.DiskGib(Between(1, 8));
    return pod.Shape();
  }

  PodRequest APodNumbered(int number) {
    PodRequest pod = APod(std::to_string(number)).Request();
    pod.shape = AShape();
    return pod;
  }

  // What somebody else may have put there, whether it fits or not.
  Placement AForeignPlacement(const RequestShape& shape, const std::string& node) {
    Placement placement{node, shape.cpu_milli, shape.memory_bytes, {}};
    placement.ephemeral_bytes = shape.ephemeral_bytes;
    const int gpus = Between(0, 2);
    for (int gpu = Between(0, 3), i = 0; i < gpus; ++i, gpu += Between(1, 3)) {
      placement.grants.push_back({gpu, Between(1, 1000), Chance(50) ? Between(0, 16'000) : 0});
    }
    return placement;
  }

  RequestMix AMix() {
    RequestMix mix;
    const int classes = Between(1, 6);
    for (int i = 0; i < classes; ++i) mix.push_back({AShape(), 1.0 / classes});
    return mix;
  }

  // Any scorers with any weights; without scorers now and then.
  ProfileSpec AProfile(const std::vector<DeviceRule>& rules) {
    ProfileSpec spec{"random", {}, OneOf(rules), Chance(30) ? TieRule::kFirst : TieRule::kEqual};
    for (const std::string_view name : ScorerNames()) {
      if (Chance(40)) spec.scorers.push_back({std::string(name), Between(1, kMaxScorerWeight)});
    }
    return spec;
  }

  // Nodes "n0", "n1", ... with pods of all kinds on them; some bound past the capacity.
  void Populate(ClusterState& state, int nodes, int pods) {
    std::vector<ClusterEvent> events;
    for (int i = 0; i < nodes; ++i) {
      events.emplace_back(NodeUpserted{ANodeNamed("n" + std::to_string(i))});
    }
    for (int i = 0; i < pods; ++i) {
      PodRequest pod = APodNumbered(i);
      const std::string node = "n" + std::to_string(Between(0, nodes - 1));
      events.emplace_back(PodBound{pod, AForeignPlacement(pod.shape, node)});
    }
    const Status applied = state.Apply(events);
    EXPECT_TRUE(applied.has_value()) << applied.error().message;
  }

 private:
  Random random_;
};

inline const std::vector<DeviceRule> kEveryDeviceRule = {
    DeviceRule::kFirst, DeviceRule::kTightest, DeviceRule::kBestScore, DeviceRule::kRandom};

}  // namespace berth::test
