// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/gpu_holders.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "scoring/explain/node_access.h"

namespace berth {

GpuHolders HoldersFor(const Snapshot& snapshot, const PodRequest& pod, std::size_t most) {
  GpuHolders holders;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (ClosedBy(node, pod) != Reason::kFits) continue;
    for (const auto& held : node.pods()) {
      const bool is_own = !pod.gang.empty() && held->pod.gang.id == pod.gang.id;
      const auto gpus = static_cast<int>(std::max<std::ptrdiff_t>(
          {std::ssize(held->placement.grants) + std::ssize(held->placement.mig),
           held->pod.shape.gpu_count(), held->placement.places}));
      if (is_own || gpus == 0) continue;
      holders.most.push_back({held->pod.id.full_name(), node.spec().name, gpus});
    }
  }
  holders.pods = holders.most.size();
  const auto order = [](const GpuHolder& one) { return std::tuple(-one.gpus, one.pod); };
  const auto end = holders.most.begin() + std::ssize(holders.most);
  const auto last =
      holders.most.begin() + static_cast<std::ptrdiff_t>(std::min(most, holders.most.size()));
  std::ranges::partial_sort(holders.most.begin(), last, end, {}, order);
  holders.most.erase(last, end);
  return holders;
}

}  // namespace berth
