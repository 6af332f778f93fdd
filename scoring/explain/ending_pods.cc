// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/ending_pods.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "scoring/devices/device_picker.h"
#include "scoring/room/room_nodes.h"

namespace berth {
namespace {

using Pod = const PodRecord*;
using Pods = std::vector<Pod>;

// How much of what is missing the pod holds: 1 for all of one kind.
double CoverageOf(const Amounts& held, const Amounts& missing) {
  double worth = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (missing[i] == 0) continue;
    worth += static_cast<double>(std::min(held[i], missing[i])) / static_cast<double>(missing[i]);
  }
  return worth;
}

bool MayEndForGood(const PodRecord& pod) {
  return pod.state != PodState::kPlanned && !pod.life.comes_back;
}

// Those that are ending first, then those that end by themselves, then the smallest.
Pods RunningOn(const Node& node) {
  Pods pods;
  for (const auto& pod : node.pods()) {
    if (MayEndForGood(*pod)) pods.push_back(pod.get());
  }
  const auto size = [](Pod pod) {
    std::int64_t milli = 0;
    for (const DeviceGrant& grant : pod->placement.grants) milli += grant.milli;
    return std::tuple(!pod->leaving, !pod->life.completes, milli, pod->placement.mig.size(),
                      pod->pod.id.full_name());
  };
  std::ranges::sort(pods, {}, size);
  return pods;
}

class EndingSearch {
 public:
  EndingSearch(const Node& node, const RequestShape& shape, const FitsNode& fits)
      : node_(node),
        fits_(fits),
        missing_(AmountsMissing(node, shape, FreeGpus(node, shape))),
        pods_(RunningOn(node)) {}

  [[nodiscard]] Pods Find() const {
    if (pods_.empty() || !FitsWithout(pods_)) return {};
    for (Pod pod : pods_) {
      if (CoversAll(AmountsHeld(*pod), missing_) && FitsWithout({pod})) return {pod};
    }
    Pods few = Greedy();
    if (few.size() <= 2) return few;
    Pods two = Pair();
    return two.empty() ? few : two;
  }

 private:
  [[nodiscard]] bool FitsWithout(const Pods& gone) const {
    return fits_(node_.Without([&gone](const PodRecord& pod) {
      return std::ranges::any_of(gone, [&](Pod one) { return one->pod.id == pod.pod.id; });
    }));
  }

  // Those that are ending first, then those that hold most of what is missing, the larger ones
  // first.
  [[nodiscard]] Pods ByCoverage() const {
    Pods order(pods_.rbegin(), pods_.rend());
    std::ranges::stable_sort(order, [this](Pod a, Pod b) {
      const auto key = [this](Pod pod) {
        return std::tuple(!pod->leaving, -CoverageOf(AmountsHeld(*pod), missing_),
                          !pod->life.completes);
      };
      return key(a) < key(b);
    });
    return order;
  }

  // Without the ones that turned out not to be needed.
  [[nodiscard]] Pods Greedy() const {
    const Pods order = ByCoverage();
    Pods gone;
    for (auto pod = order.begin(); pod != order.end() && !FitsWithout(gone); ++pod) {
      gone.push_back(*pod);
    }
    for (std::size_t i = gone.size(); i-- > 0;) {
      Pods fewer = gone;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (FitsWithout(fewer)) gone = std::move(fewer);
    }
    return gone;
  }

  [[nodiscard]] Pods Pair() const {
    Pods holders = ByCoverage();
    if (missing_ != Amounts{}) {
      std::erase_if(holders,
                    [this](Pod pod) { return CoverageOf(AmountsHeld(*pod), missing_) == 0; });
    }
    if (holders.size() > kMostInPairs) holders.resize(kMostInPairs);
    for (std::size_t i = 0; i < holders.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        Amounts held = AmountsHeld(*holders[i]);
        const Amounts more = AmountsHeld(*holders[j]);
        for (std::size_t kind = 0; kind < held.size(); ++kind) held[kind] += more[kind];
        if (CoversAll(held, missing_) && FitsWithout({holders[j], holders[i]}))
          return {holders[j], holders[i]};
      }
    }
    return {};
  }

  const Node& node_;
  const FitsNode& fits_;
  const Amounts missing_;
  const Pods pods_;
};

}  // namespace

std::optional<std::size_t> LeastEnding(const Node& node, const RequestShape& shape) {
  const Amounts missing = AmountsMissing(node, shape, FreeGpus(node, shape));
  std::size_t least = 1;
  for (std::size_t kind = 0; kind < missing.size(); ++kind) {
    std::vector<std::int64_t> held;
    for (const auto& pod : node.pods()) {
      if (MayEndForGood(*pod)) held.push_back(AmountsHeld(*pod)[kind]);
    }
    std::ranges::sort(held, std::greater<>());
    std::int64_t left = missing[kind];
    std::size_t count = 0;
    for (; count < held.size() && left > 0; ++count) left -= held[count];
    if (left > 0 || held.empty()) return std::nullopt;
    least = std::max(least, count);
  }
  return least;
}

std::vector<const PodRecord*> EndingPods(const Node& node, const RequestShape& shape,
                                         const FitsNode& fits) {
  return EndingSearch(node, shape, fits).Find();
}

}  // namespace berth
