// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/node_edits.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace berth {
namespace {

constexpr std::string_view kHostname = "kubernetes.io/hostname";

NodeSpec CopyOf(const NodeSpec& like, const std::string& name, const std::string& suffix) {
  NodeSpec spec = like;
  spec.name = name;
  spec.ready = true;
  spec.refuses_gpu_pods = false;
  spec.refused_asks = nullptr;
  spec.gpu_condition.clear();
  spec.named_gpus_condition.clear();
  spec.missing = 0;
  for (GpuSpec& gpu : spec.gpus) {
    gpu.healthy = !gpu.foreign;
    if (!gpu.uuid.empty()) gpu.uuid += suffix;
  }
  for (auto& [key, value] : spec.labels) {
    if (key == kHostname) value = name;
  }
  std::erase_if(spec.taints,
                [](const Taint& taint) { return IsOfCondition(taint) || IsOfLeaving(taint); });
  if (spec.mig_trouble() != MigTrouble::kNone) {
    MigSpec mig = *spec.mig;
    mig.trouble = MigTrouble::kNone;
    spec.mig = NodeMig(std::move(mig));
  }
  return spec;
}

// Pods of DaemonSets and static pods are on a node as soon as it is there.
void BringPods(const Node& like, const std::string& suffix, Node& node) {
  for (const auto& pod : like.pods()) {
    if (!pod->life.comes_back) continue;
    auto copy = std::make_shared<PodRecord>(*pod);
    copy->pod.id.uid += suffix;
    copy->pod.id.name += suffix;
    copy->placement.node = node.spec().name;
    node.Put(std::move(copy));
  }
}

tl::unexpected<Error> Unknown(const std::string& place, const std::string& name) {
  return Fail(Errc::kNotFound, place + ": want the name of a node, got \"" + name + "\"");
}

using Nodes = std::map<std::string, std::shared_ptr<const Node>, std::less<>>;

Status Add(const Snapshot& snapshot, const NodeEdits& edits, EditedNodes& edited, Nodes& nodes) {
  int left = kMostAddedNodes;
  for (std::size_t i = 0; i < edits.add.size(); ++i) {
    const NodeCopies& copies = edits.add[i];
    const std::string place = "add[" + std::to_string(i) + "]";
    const NodeIndex like = copies.shape ? kNoNode : snapshot.names().Find(copies.like);
    if (!copies.shape && like == kNoNode) return Unknown(place + ".like", copies.like);
    const NodeSpec& spec = copies.shape ? *copies.shape : snapshot.node(like).spec();
    if (copies.count < 1 || copies.count > left) {
      return Invalid(place + ".count: want 1.." + std::to_string(kMostAddedNodes) +
                     " nodes in all, got " + std::to_string(copies.count));
    }
    left -= copies.count;
    int number = 1;
    for (int copy = 0; copy < copies.count; ++number) {
      const std::string suffix = "-new-" + std::to_string(number);
      const std::string name = copies.like + suffix;
      if (nodes.contains(name)) continue;
      Node node(std::make_shared<const NodeSpec>(CopyOf(spec, name, suffix)));
      if (like != kNoNode) BringPods(snapshot.node(like), suffix, node);
      nodes.emplace(name, std::make_shared<const Node>(std::move(node)));
      edited.added.push_back(name);
      ++copy;
    }
  }
  return {};
}

}  // namespace

Result<EditedNodes> Edit(const std::shared_ptr<const Snapshot>& snapshot, const NodeEdits& edits) {
  EditedNodes edited;
  edited.snapshot = snapshot;
  if (edits.add.empty() && edits.remove.empty()) return edited;
  std::set<std::string> removed;
  for (std::size_t i = 0; i < edits.remove.size(); ++i) {
    const std::string& name = edits.remove[i];
    const NodeIndex gone = snapshot->names().Find(name);
    if (gone == kNoNode) return Unknown("remove[" + std::to_string(i) + "]", name);
    if (!removed.insert(name).second) continue;
    for (const auto& pod : snapshot->node(gone).pods()) {
      ++edited.pods_lost;
      if (pod->pod.shape.wants_gpu()) edited.gpu_pods_lost.push_back(pod->pod.id.full_name());
    }
  }
  std::ranges::sort(edited.gpu_pods_lost);
  edited.removed.assign(removed.begin(), removed.end());
  Nodes nodes;
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    const std::string& name = snapshot->node(i).spec().name;
    // The node itself, not a copy: pods and claims on it stay.
    nodes.emplace(name, std::shared_ptr<const Node>(snapshot, &snapshot->node(i)));
  }
  BERTH_TRY_STATUS(Add(*snapshot, edits, edited, nodes));
  std::vector<std::shared_ptr<const Node>> sorted;
  for (auto& [name, node] : nodes) {
    if (!removed.contains(name)) sorted.push_back(std::move(node));
  }
  edited.snapshot = std::make_shared<const Snapshot>(sorted);
  return edited;
}

}  // namespace berth
