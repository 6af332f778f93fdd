// SPDX-License-Identifier: Apache-2.0
//
// What news of nodes and pods costs the process that leads, from the text of the watch to the new
// snapshot: nodes whose agents publish what they are, one of these annotations after the other, and
// pods whose status says which GPUs they have.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/state/cluster_state.h"
#include "config/config.h"
#include "server/dialects/registry.h"
#include "server/kube/watch/cluster_sync.h"

namespace berth {
namespace {

constexpr int kGpus = 8;

std::string UuidOf(int node, int gpu) {
  std::string number = std::to_string(100'000'000 + node * kGpus + gpu).substr(1);
  return "GPU-" + number + "-2051-db6c-0430-ffc457bff834";
}

// The value of berth.dev/topology, as a text in JSON: pairs of linked GPUs, other ones for each
// variant.
std::string TopologyOf(int variant) {
  std::string links, numa;
  for (int a = 0; a < kGpus; ++a) {
    if (a > 0 && a + 1 < kGpus) links += '/';
    for (int b = a + 1; b < kGpus; ++b) {
      const bool pair = (a ^ b) == 1 + (variant & 1);
      links += pair ? '2' : a / 4 == b / 4 ? '1' : '0';
    }
    numa += std::string(a == 0 ? "" : ",") + R"(\")" + std::to_string(a / 4) + R"(\")";
  }
  return R"({\"version\":1,\"gpus\":8,\"cells\":[\"SYS\",\"NODE\",\"NV4\"],\"links\":\")" + links +
         R"(\",\"numa\":[)" + numa + "]}";
}

// Nothing that is written here may be unreadable.
void Fail(std::string_view, std::string_view, const std::string& problem) {
  std::fprintf(stderr, "%s\n", problem.c_str());
  std::abort();
}

struct Published {
  bool topology = false, uuids = false, kubelet = false, carries_out = false;
};

PaddedText NodeText(int node, int version, const Published& published) {
  std::string annotations, list;
  const auto add = [&annotations](const char* key, const std::string& value) {
    annotations +=
        std::string(annotations.empty() ? "" : ",") + "\"berth.dev/" + key + "\":\"" + value + "\"";
  };
  if (published.topology) add("topology", TopologyOf(node + version));
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    list += (gpu == 0 ? "" : ",") + UuidOf(node, (gpu + version) % kGpus);
  }
  if (published.uuids) add("gpu-uuids", list);
  const char* const policy = version % 2 == 0 ? "best-effort" : "single-numa-node";
  if (published.kubelet) {
    add("kubelet", R"({\"topologyManagerPolicy\":\")" + std::string(policy) + R"(\"})");
  }
  if (published.carries_out && version % 2 == 0) add("carries-out", "nvidia.com/gpu");
  const char* const amounts = R"({"cpu":"96","memory":"1000Gi","pods":"110","nvidia.com/gpu":"8"})";
  return PaddedText(
      R"({"kind":"Node","metadata":{"name":"n)" + std::to_string(node) +
      R"(","resourceVersion":")" + std::to_string(version) +
      R"(","labels":{"nvidia.com/gpu.product":"NVIDIA-A100-SXM4-80GB"},"annotations":{)" +
      annotations + R"(}},"spec":{},"status":{"allocatable":)" + amounts + R"(,"capacity":)" +
      amounts + R"(,"conditions":[{"type":"Ready","status":"True"}]}})");
}

struct Cluster {
  const Config config = DefaultConfig();
  const std::shared_ptr<const wire::Dialects> dialects = dialects::AllDialects(config);
  const wire::NodeRules node_rules{config, dialects};
  const wire::PodRules pod_rules{dialects, config};
  ClusterState state;
  kube::NodeSink nodes{kube::PublishTo(state), node_rules, Fail};
  kube::PodSink pods{state, pod_rules, Fail};

  explicit Cluster(int count, const Published& published = {}) {
    nodes.ListBegins();
    for (int node = 0; node < count; ++node) nodes.Listed(NodeText(node, 0, published));
    nodes.ListEnds();
  }
};

// Every node of 5,000 publishes the same annotation anew, one after the other. The texts are there.
void Publishing(benchmark::State& state, const Published& published) {
  constexpr int kNodes = 5000;
  Cluster cluster(kNodes, published);
  int version = 1;
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<PaddedText> texts;
    for (int node = 0; node < kNodes; ++node) texts.push_back(NodeText(node, version, published));
    ++version;
    state.ResumeTiming();
    for (const PaddedText& text : texts) cluster.nodes.Changed(text);
  }
  state.counters["per_node"] = benchmark::Counter(
      kNodes, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void BM_Publishes(benchmark::State& state) {
  const auto what = state.range(0);
  Publishing(state, {.topology = what == 0 || what == 4,
                     .uuids = what == 1 || what == 4,
                     .kubelet = what == 2 || what == 4,
                     .carries_out = what == 3 || what == 4});
}
// topology, gpu-uuids, kubelet, carries-out, all at once
BENCHMARK(BM_Publishes)->DenseRange(0, 4)->Unit(benchmark::kMillisecond);

PaddedText PodText(int pod, int version, bool given) {
  const std::string name = "p" + std::to_string(pod);
  std::string text =
      R"({"kind":"Pod","metadata":{"name":")" + name + R"(","namespace":"ns","uid":"uid-)" + name +
      R"(","resourceVersion":")" + std::to_string(version) + R"("},"spec":{"nodeName":"n)" +
      std::to_string(pod) +
      R"(","containers":[{"name":"main","resources":{"limits":{"nvidia.com/gpu":"8"}}}]},)" +
      R"("status":{"phase":"Running","containerStatuses":[{"name":"main","ready":true,)" +
      R"("restartCount":)" + std::to_string(version) +
      R"(,"state":{"running":{"startedAt":"2026-11-24T10:00:00Z"}},"image":"registry.example/train:1")";
  if (given) {
    text += R"(,"allocatedResourcesStatus":[{"name":"nvidia.com/gpu","resources":[)";
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      text += gpu == 0 ? "" : ",";
      text += R"({"resourceID":")" + UuidOf(pod, gpu) + R"(","health":"Healthy"})";
    }
    text += "]}]";
  }
  return PaddedText(text + "}]}}");
}

// The status of each of 1,000 pods changes, in what says nothing of its GPUs. given: it says these
// too, as before.
void BM_StatusAgain(benchmark::State& state) {
  constexpr int kPods = 1000;
  const bool given = state.range(0) != 0;
  Cluster cluster(kPods, {.uuids = true});
  int version = 1;
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<PaddedText> texts;
    for (int pod = 0; pod < kPods; ++pod) texts.push_back(PodText(pod, version, given));
    ++version;
    state.ResumeTiming();
    for (const PaddedText& text : texts) cluster.pods.Changed(text);
  }
  state.counters["per_pod"] = benchmark::Counter(
      kPods, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_StatusAgain)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace berth
