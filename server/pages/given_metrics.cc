// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "server/pages/metrics_parts.h"
#include "topology/gpu_mask.h"

namespace berth {
namespace {

constexpr std::array<std::string_view, 4> kSizesOfGiven = {"2", "3-4", "5-8", "9+"};
std::size_t GivenSizeOf(std::size_t gpus) {
  return gpus <= 2 ? 0 : gpus <= 4 ? 1 : gpus <= 8 ? 2 : 3;
}

struct GivenTotals {
  int by_kubelet = 0, by_agent = 0;  // pods whose GPUs they have said
  int on_others = 0;
  std::map<std::string, int> by_node;  // these
  std::array<double, kSizesOfGiven.size()> quality = {};
  std::array<int, kSizesOfGiven.size()> pods = {};
};

// The links of the GPUs that the pod has, relative to those that it was planned with.
double QualityRatio(const GpuLinks& links, const PodRecord& pod, std::size_t gpus) {
  if (!pod.on_other_gpus()) return 1;
  const int planned = links.quality(GpusAmong(pod.planned->grants, gpus));
  return planned == 0 ? 1 : links.quality(GpusAmong(pod.placement.grants, gpus)) / double(planned);
}

void AddGivenPod(const Node& node, const PodRecord& pod, GivenTotals& totals) {
  if (!pod.planned) return;
  ++(pod.evidence() == Evidence::kKubelet ? totals.by_kubelet : totals.by_agent);
  if (pod.on_other_gpus()) {
    ++totals.on_others;
    ++totals.by_node[node.spec().name];
  }
  const std::size_t gpus = pod.placement.grants.size();
  if (gpus < 2 || pod.planned->grants.size() != gpus || !node.spec().links.known()) return;
  totals.quality[GivenSizeOf(gpus)] += QualityRatio(node.spec().links, pod, node.gpus().size());
  ++totals.pods[GivenSizeOf(gpus)];
}

}  // namespace

void AddGivenMetrics(const Snapshot& snapshot, const MetricsConfig& wanted, MetricsText& text) {
  GivenTotals totals;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    for (const auto& pod : node.pods()) AddGivenPod(node, *pod, totals);
  }
  text.Gauge("berth_pods_with_given_gpus",
             "Running pods whose GPUs or MIG devices the kubelet or the node's agent has reported")
      .Sample(totals.by_kubelet, {{"by", "kubelet"}})
      .Sample(totals.by_agent, {{"by", "agent"}});
  text.Gauge("berth_pods_on_other_gpus",
             "Running pods that have other GPUs or MIG devices than Berth chose for them")
      .Sample(totals.on_others);
  text.Gauge("berth_given_link_quality_ratio",
             "Mean link quality of the GPUs that pods have, relative to those that Berth chose, by "
             "number of GPUs");
  for (std::size_t size = 0; size < kSizesOfGiven.size(); ++size) {
    if (totals.pods[size] == 0) continue;
    text.Sample(totals.quality[size] / totals.pods[size], {{"size", kSizesOfGiven[size]}});
  }
  if (!wanted.by_gpu) return;
  text.Gauge(
      "berth_node_pods_on_other_gpus",
      "Running pods of the node that have other GPUs or MIG devices than Berth chose for them");
  for (const auto& [node, pods] : totals.by_node) text.Sample(pods, {{"node", node}});
}

}  // namespace berth
