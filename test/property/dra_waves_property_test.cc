// SPDX-License-Identifier: Apache-2.0
//
// Waves of equal pods on nodes whose GPUs kube-scheduler gives by claims leave as many nodes idle
// as on nodes with a device plugin, though Berth hears of these pods late: kube-scheduler writes
// the claim of a pod, and asks about the next ones, before it has the pod bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cluster/state/cluster_state.h"
#include "scoring/admission.h"
#include "scoring/judgement.h"
#include "scoring/registry.h"
#include "test/support/builders.h"

namespace berth::test::dra_waves_property_test {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr int kGpusOfNode = 8;

// Who gives the GPUs, and whether Berth knows them.
enum class Fleet { kPlugin, kSlices, kUnreadSlices };

struct Wave {
  int pods, gpus;
};

RequestMix AMix() {
  return {{APod("one").Whole(1).Cpu(1).Shape(), 0.5},
          {APod("two").Whole(2).Cpu(1).Shape(), 0.3},
          {APod("four").Whole(4).Cpu(1).Shape(), 0.2}};
}

// What matters of kube-scheduler here: it knows at once what it has decided, asks Berth about
// the nodes that have room, takes the best, of equal ones the emptiest, and binds `late` pods late.
class Cluster {
 public:
  Cluster(Fleet fleet, const std::string& profile, int nodes, std::size_t late)
      : engine_(BuildProfile(*FindBuiltinProfile(profile), AMix()).value()),
        late_(late),
        free_(static_cast<std::size_t>(nodes), kGpusOfNode) {
    for (int i = 0; i < nodes; ++i) {
      NodeSpec spec = ANode("n" + std::to_string(i)).Spec();
      if (fleet != Fleet::kUnreadSlices) {
        spec = ANode(spec.name).Gpus(kGpusOfNode).Spec();
        spec.gpu_resource = kGpu;
      }
      if (fleet == Fleet::kSlices) spec.by_claims = {{kGpu, {0, 1, 2, 3, 4, 5, 6, 7}}};
      Apply(NodeUpserted{spec});
    }
  }

  void Run(const Wave& wave) {
    for (int i = 0; i < wave.pods; ++i) Place(wave.gpus);
    while (!unbound_.empty()) Bind();
  }
  // Before Berth was there.
  void Hold(std::size_t node, int gpus) {
    unbound_.emplace_back(PodOf(gpus), static_cast<NodeIndex>(node));
    free_[node] -= gpus;
    Bind();
  }
  [[nodiscard]] std::ptrdiff_t IdleNodes() const { return std::ranges::count(free_, kGpusOfNode); }

 private:
  PodRequest PodOf(int gpus) {
    PodRequest pod = APod("p" + std::to_string(pods_++)).Whole(gpus).Cpu(1).Request();
    pod.shape.gpu_resource = kGpu;
    pod.device_class = "gpu.nvidia.com";
    return pod;
  }
  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state_.Apply(std::span(&event, 1))); }

  void Place(int gpus) {
    const PodRequest pod = PodOf(gpus);
    std::vector<NodeIndex> with_room;
    for (NodeIndex i = 0; i < free_.size(); ++i) {
      if (free_[i] >= gpus) with_room.push_back(i);
    }
    const auto snapshot = state_.Current();
    const Judgement judged =
        Judge(engine_, snapshot, {.pod = pod, .candidates = with_room, .behind_scheduler = true});
    if (judged.fitting.empty()) return;
    const auto priorities = Priorities(engine_, snapshot, pod, judged.fitting, {});
    std::size_t best = 0;
    const auto rank = [&](std::size_t i) {
      return std::tuple(priorities[i], free_[judged.fitting[i]]);
    };
    for (std::size_t i = 1; i < priorities.size(); ++i) best = rank(i) > rank(best) ? i : best;
    free_[judged.fitting[best]] -= gpus;
    unbound_.emplace_back(pod, judged.fitting[best]);
    if (unbound_.size() > late_) Bind();
  }

  void Bind() {
    const auto [pod, node] = unbound_.front();
    unbound_.pop_front();
    const auto snapshot = state_.Current();
    if (GetsClaimOn(snapshot->node(node), pod)) {
      return Apply(PodBound{pod, {snapshot->node(node).spec().name, 0, 0, {}}});
    }
    const auto placement = engine_.PlaceOn(snapshot, pod.shape, node);
    ASSERT_TRUE(placement) << "Berth only hears late";
    Apply(PodBound{pod, *placement});
  }

  ClusterState state_;
  Engine engine_;
  const std::size_t late_;
  std::vector<int> free_;  // GPUs of each node
  std::deque<std::pair<PodRequest, NodeIndex>> unbound_;
  int pods_ = 0;
};

TEST(DraWaves, LeaveAsManyNodesIdleAsOnADevicePlugin) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const int nodes = 2 + static_cast<int>(random.Below(6));
    std::vector<int> held(static_cast<std::size_t>(nodes), 0);
    if (random.Below(2) == 0) held[random.Below(held.size())] = 1 << random.Below(3);
    std::vector<Wave> waves;
    for (int left = nodes * kGpusOfNode * 3 / 4; left > 0;) {
      const int gpus = 1 << random.Below(3), pods = 1 + static_cast<int>(random.Below(12));
      waves.push_back({pods, gpus});
      left -= pods * gpus;
    }
    const std::size_t late = 1 + random.Below(9);
    for (const std::string profile : {"best-fit", "expected-waste"}) {
      const auto idle_after = [&](Fleet fleet, std::size_t lag) {
        Cluster cluster(fleet, profile, nodes, lag);
        for (std::size_t i = 0; i < held.size(); ++i) {
          if (held[i] > 0) cluster.Hold(i, held[i]);
        }
        std::vector<std::ptrdiff_t> idle;
        for (const Wave& wave : waves) {
          cluster.Run(wave);
          idle.push_back(cluster.IdleNodes());
        }
        return idle;
      };
      const auto with_plugin = idle_after(Fleet::kPlugin, 0);
      for (const Fleet fleet : {Fleet::kSlices, Fleet::kUnreadSlices}) {
        const auto with_dra = idle_after(fleet, late);
        for (std::size_t i = 0; i < waves.size(); ++i) {
          EXPECT_GE(with_dra[i], with_plugin[i])
              << "seed " << seed << ", " << profile << ", slices "
              << (fleet == Fleet::kSlices ? "read" : "unread") << ", wave " << i << ": "
              << waves[i].pods << " pods of " << waves[i].gpus << ", " << nodes << " nodes, "
              << late << " late";
        }
      }
    }
  }
}

}  // namespace
}  // namespace berth::test::dra_waves_property_test
