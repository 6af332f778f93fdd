// SPDX-License-Identifier: Apache-2.0
//
// KubeletModel: how a kubelet gives the GPUs of one device plugin to the containers of a pod, by
// the steps of its source (Kubernetes 1.36, pkg/kubelet/cm: devicemanager/topology_hints.go,
// devicemanager/manager.go devicesToAllocate, topologymanager/policy*.go, scope_*.go): every set of
// NUMA nodes is a hint, hints are merged one after the other, and what a container gets is taken
// from its aligned devices. Nothing here is shared with cluster/node/topology_manager.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "topology/gpu_mask.h"

namespace berth::test {

class KubeletModel {
 public:
  struct Container {
    int count = 0;
    bool ends_first = false;  // an init container that is no sidecar
  };
  // What the device plugin prefers: of `available`, with all of `must`, `size` in all.
  using Prefer =
      std::function<GpuMask(std::size_t container, GpuMask available, GpuMask must, int size)>;

  // numa: of each GPU. policy: "none", "best-effort", "restricted", "single-numa-node".
  KubeletModel(std::vector<int> numa, std::string policy, bool by_pod)
      : numa_(std::move(numa)), policy_(std::move(policy)), by_pod_(by_pod) {
    for (const int node : numa_) nodes_.insert(node);
  }

  // What each container gets; nullopt: the pod is refused. total: what the pod asks for in all, by
  // the rule of Kubernetes.
  std::optional<std::vector<GpuMask>> Admit(const std::vector<Container>& containers, int total,
                                            GpuMask available, const Prefer& prefer) const {
    std::optional<Hint> of_pod;
    if (by_pod_) {
      of_pod = Decide(Hints(available, 0, total));
      if (!of_pod) return std::nullopt;
    }
    std::vector<GpuMask> given;
    GpuMask reusable = 0;
    for (std::size_t i = 0; i < containers.size(); ++i) {
      const Container& container = containers[i];
      const auto hint = by_pod_ ? of_pod : Decide(Hints(available, reusable, container.count));
      if (!hint) return std::nullopt;
      const auto got = Allocate(i, *hint, available, reusable, container.count, prefer);
      if (!got) return std::nullopt;
      given.push_back(*got);
      available &= ~*got;
      reusable = container.ends_first ? reusable | *got : reusable & ~*got;
    }
    return given;
  }

 private:
  using NumaSet = std::uint32_t;  // bit i: the i-th NUMA node
  struct Hint {
    NumaSet affinity = 0;  // 0: none
    bool preferred = false;
  };

  [[nodiscard]] int NodeAt(int i) const { return *std::next(nodes_.begin(), i); }
  [[nodiscard]] NumaSet All() const { return (NumaSet{1} << nodes_.size()) - 1; }
  [[nodiscard]] bool IsIn(NumaSet set, int gpu) const {
    for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
      if ((set >> i & 1) != 0 && NodeAt(i) == numa_[static_cast<std::size_t>(gpu)]) return true;
    }
    return false;
  }

  [[nodiscard]] std::vector<Hint> Hints(GpuMask available, GpuMask reusable, int request) const {
    std::vector<Hint> hints;
    if (std::popcount(available | reusable) < request) return hints;
    int least = static_cast<int>(nodes_.size());
    for (NumaSet set = 1; set <= All(); ++set) {
      int devices = 0;
      for (int gpu = 0; gpu < static_cast<int>(numa_.size()); ++gpu) devices += IsIn(set, gpu);
      if (devices >= request) least = std::min(least, std::popcount(set));
      int matching = 0;
      bool has_reusable = true;
      ForEachGpu(reusable, [&](int gpu) { has_reusable = has_reusable && IsIn(set, gpu); });
      ForEachGpu(available | reusable, [&](int gpu) { matching += IsIn(set, gpu); });
      if (has_reusable && matching >= request) hints.push_back({set, false});
    }
    for (Hint& hint : hints) hint.preferred = std::popcount(hint.affinity) == least;
    return hints;
  }

  static bool IsNarrower(NumaSet a, NumaSet b) {
    return std::popcount(a) == std::popcount(b) ? a < b : std::popcount(a) < std::popcount(b);
  }

  // nullopt: not admitted.
  [[nodiscard]] std::optional<Hint> Decide(std::vector<Hint> hints) const {
    if (policy_ == "none") return Hint{};
    if (hints.empty()) hints = {{0, false}};  // too little of the resource
    if (policy_ == "single-numa-node") {
      std::erase_if(hints, [](const Hint& hint) {
        return hint.affinity == 0 || std::popcount(hint.affinity) != 1 || !hint.preferred;
      });
    }
    std::optional<Hint> best;
    for (const Hint& hint : hints) {
      const Hint merged{hint.affinity == 0 ? All() : hint.affinity, hint.preferred};
      const bool is_better =
          !best || (merged.preferred && !best->preferred) ||
          (merged.preferred == best->preferred && IsNarrower(merged.affinity, best->affinity));
      if (is_better) best = merged;
    }
    if (!best) best = Hint{All(), false};
    if (policy_ != "best-effort" && !best->preferred) return std::nullopt;
    return best;
  }

  [[nodiscard]] std::optional<GpuMask> Allocate(std::size_t container, const Hint& hint,
                                                GpuMask available, GpuMask reusable, int count,
                                                const Prefer& prefer) const {
    GpuMask got = 0;
    const auto take = [&](GpuMask from) {
      ForEachGpu(from & ~got, [&](int gpu) {
        if (std::popcount(got) < count) got |= GpuBit(gpu);
      });
      return std::popcount(got) == count;
    };
    if (take(reusable)) return got;
    if (std::popcount(available) < count - std::popcount(got)) return std::nullopt;
    GpuMask aligned = 0;
    if (hint.affinity != 0) {
      ForEachGpu(available, [&](int gpu) {
        if (IsIn(hint.affinity, gpu)) aligned |= GpuBit(gpu);
      });
    }
    if (count - std::popcount(got) < std::popcount(aligned)) {
      if (take(prefer(container, aligned | got, got, count) & aligned)) return got;
      return take(aligned) ? std::optional(got) : std::nullopt;
    }
    if (take(aligned)) return got;
    if (take(prefer(container, available | got, got, count) & available)) return got;
    return take(available) ? std::optional(got) : std::nullopt;
  }

  std::vector<int> numa_;
  std::set<int> nodes_;
  std::string policy_;
  bool by_pod_;
};

}  // namespace berth::test
