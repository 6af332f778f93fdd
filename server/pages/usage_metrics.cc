// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "scoring/explain/gpu_use.h"
#include "server/pages/metrics_parts.h"
#include "topology/mig/mig_product.h"

namespace berth {

namespace {

struct NamespaceUse {
  std::map<std::string, double> gpus;       // by model
  std::map<std::string, std::int64_t> mig;  // devices, by profile
};

void AddNode(const Node& node, std::map<std::string, NamespaceUse>& by_namespace) {
  for (const auto& pod : node.pods()) {
    if (!pod->pod.shape.wants_gpu() || pod->state == PodState::kPlanned) continue;
    NamespaceUse& use = by_namespace[pod->pod.id.namespace_name];
    for (const auto& [profile, devices] : MigHeld(*pod))
      use.mig[MigProfileName(profile)] += devices;
    const double gpus = GpusHeld(*pod, node.spec().places);
    if (gpus > 0) use.gpus[node.spec().gpu_model] += gpus;
  }
}

void ByNamespace(const Snapshot& snapshot, std::span<const WaitingPod> waiting, MetricsText& text) {
  std::map<std::string, NamespaceUse> by_namespace;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) AddNode(snapshot.node(i), by_namespace);
  std::map<std::string, std::int64_t> waits;
  for (const WaitingPod& pod : waiting) {
    if (!pod.gated && pod.pod->shape.wants_gpu()) ++waits[pod.pod->id.namespace_name];
  }
  text.Gauge("berth_namespace_gpus",
             "GPUs held by pods of the namespace; shares and GPU replicas count as fractions");
  for (const auto& [name, use] : by_namespace) {
    for (const auto& [model, gpus] : use.gpus) {
      text.Sample(gpus, {{"pod_namespace", name}, {"model", model}});
    }
  }
  text.Gauge("berth_namespace_mig_devices", "MIG devices held by pods of the namespace");
  for (const auto& [name, use] : by_namespace) {
    for (const auto& [profile, devices] : use.mig) {
      text.Sample(devices, {{"pod_namespace", name}, {"profile", profile}});
    }
  }
  text.Gauge("berth_namespace_waiting_gpu_pods",
             "Waiting GPU pods of the namespace, without gated ones");
  for (const auto& [name, pods] : waits) text.Sample(pods, {{"pod_namespace", name}});
}

struct ClassUse {
  std::map<std::string, double> gpus;  // by model
  double avoided = 0;                  // of these, on nodes with a trait that the class avoids
  std::int64_t waiting = 0;
};

bool Avoids(const NodeWishes& wishes, const NodeSpec& spec) {
  return std::ranges::any_of(wishes.wishes, [&spec](const TraitWish& wish) {
    return wish.weight < 0 && HasTrait(spec.traits, wish.trait);
  });
}

// Whether anybody is of a class is for the configuration to say: there is no switch.
void ByClass(const Snapshot& snapshot, std::span<const WaitingPod> waiting, MetricsText& text) {
  std::map<std::string, ClassUse> by_class;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    for (const auto& pod : node.pods()) {
      if (pod->pod.classes.empty() || pod->state == PodState::kPlanned) continue;
      ClassUse& use = by_class[pod->pod.classes.front()];
      const double gpus = GpusHeld(*pod, node.spec().places);
      use.gpus[node.spec().gpu_model] += gpus;
      if (Avoids(pod->pod.shape.nodes, node.spec())) use.avoided += gpus;
    }
  }
  for (const WaitingPod& pod : waiting) {
    if (!pod.gated && !pod.pod->classes.empty()) ++by_class[pod.pod->classes.front()].waiting;
  }
  if (by_class.empty()) return;
  text.Gauge("berth_workload_class_gpus",
             "GPUs held by pods of the workload class; shares and GPU replicas count as fractions");
  for (const auto& [name, use] : by_class) {
    for (const auto& [model, gpus] : use.gpus) {
      text.Sample(gpus, {{"workload_class", name}, {"model", model}});
    }
  }
  text.Gauge("berth_workload_class_avoided_gpus",
             "GPUs that the workload class holds on nodes with a trait that it avoids");
  for (const auto& [name, use] : by_class) text.Sample(use.avoided, {{"workload_class", name}});
  text.Gauge("berth_workload_class_waiting_pods",
             "Waiting pods of the workload class, without gated ones");
  for (const auto& [name, use] : by_class) text.Sample(use.waiting, {{"workload_class", name}});
}

void ByGpu(const Snapshot& snapshot, MetricsText& text) {
  text.Gauge("berth_gpu_allocated_ratio", "Fraction of the GPU that pods and claims hold, 0 to 1");
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    for (std::size_t gpu = 0; gpu < node.gpus().size(); ++gpu) {
      const std::string& uuid = node.spec().gpus[gpu].uuid;
      if (uuid.empty()) continue;
      text.Sample(1 - node.gpus()[gpu].milli / double{kMilliPerGpu},
                  {{"node", node.spec().name}, {"gpu", std::to_string(gpu)}, {"uuid", uuid}});
    }
  }
}

}  // namespace

void AddUsageMetrics(const Snapshot& snapshot, std::span<const WaitingPod> waiting,
                     const MetricsConfig& wanted, MetricsText& text) {
  ByClass(snapshot, waiting, text);
  if (wanted.by_namespace) ByNamespace(snapshot, waiting, text);
  if (wanted.by_gpu) ByGpu(snapshot, text);
}

void AddRoomMetrics(std::span<const RoomWithin> within, MetricsText& text) {
  text.Gauge(
      "berth_room_within_moves",
      "Nodes with so many GPUs that so many moves of pods would make idle, found each minute");
  for (const RoomWithin& kind : within) {
    for (std::size_t i = 0; i < kMovesWithin.size(); ++i) {
      text.Sample(kind.nodes[i], {{"model", kind.model},
                                  {"gpus", std::to_string(kind.gpus)},
                                  {"moves", std::to_string(kMovesWithin[i])}});
    }
  }
}

void AddRoomMakerMetrics(const RoomMaker::Stats& stats, MetricsText& text) {
  text.Counter("berth_room_plans_total",
               "Plans of moves that Berth carried out (makeRoom), by result")
      .Sample(stats.done, {{"result", "done"}})
      .Sample(stats.given_up, {{"result", "given_up"}});
  text.Counter("berth_room_moves_total", "Pods that Berth evicted to make room, by result")
      .Sample(stats.evicted, {{"result", "evicted"}})
      .Sample(stats.blocked, {{"result", "blocked"}})
      .Sample(stats.failed, {{"result", "failed"}});
  text.Gauge("berth_room_moves_left", "Moves to go of the plan that Berth carries out now")
      .Sample(stats.left);
  text.Gauge("berth_room_idle_given_up",
             "1 while Berth keeps no idle nodes because nodes that it kept idle vanished")
      .Sample(stats.gave_idle_up ? 1 : 0);
}

}  // namespace berth
