// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/start_state.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "base/text.h"
#include "bench/replay/csv.h"
#include "cluster/state/cluster_state.h"
#include "config/config.h"
#include "server/dialects/registry.h"
#include "server/wire/file/cluster_file.h"

namespace berth::replay {
namespace {

// The fields of an event that name a node.
std::string* NodeIn(ClusterEvent& event) {
  return std::visit(
      [](auto& what) -> std::string* {
        if constexpr (requires { what.spec.name; }) {
          return &what.spec.name;
        } else if constexpr (requires { what.placement.node; }) {
          return &what.placement.node;
        } else if constexpr (requires { what.node; }) {
          return &what.node;
        } else {
          return nullptr;
        }
      },
      event);
}

// What tasks without tolerations can take of the GPUs.
std::int64_t FreeMilli(const Node& node) {
  if (!node.spec().ready || !node.spec().taints.empty()) return 0;
  std::int64_t free = std::int64_t{std::max(node.free_places(), 0)} * kMilliPerGpu;
  for (int gpu = 0; gpu < static_cast<int>(node.gpus().size()); ++gpu) {
    if (!node.IsOpen(gpu)) continue;
    free += std::max(node.gpus()[static_cast<std::size_t>(gpu)].milli, 0);
  }
  return free;
}

// Why tasks can take no GPU, where nodes have GPUs and none is free; "": they can, or none has one.
std::string WhyNoneIsFree(const Snapshot& snapshot) {
  std::size_t tainted = 0, unready = 0, taken = 0;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    const NodeSpec& spec = node.spec();
    if (FreeMilli(node) > 0) return "";
    if (spec.gpus.empty() && spec.places.count == 0) continue;
    ++(!spec.taints.empty() ? tainted : !spec.ready ? unready : taken);
  }
  std::string why;
  const auto add = [&why](std::size_t nodes, const char* what) {
    if (nodes > 0) AddFact(why, CountText(nodes, "GPU node") + " " + what);
  };
  add(tainted, "with taints, which tasks do not tolerate");
  add(unready, "not ready");
  add(taken, "with no GPU free");
  return why;
}

}  // namespace

bool StartState::IsIn(const std::string& path) {
  const auto text = ReadTextFile(path);
  return text && Trimmed(*text).starts_with('{');
}

Result<std::shared_ptr<const StartState>> StartState::Read(const std::string& path) {
  const Config config = DefaultConfig();
  const auto dialects = dialects::AllDialects(config);
  const wire::NodeRules nodes(config, dialects);
  PodGroups groups;
  const wire::PodRules pods(dialects, config.resources, config.topology_levels, &groups);
  BERTH_TRY(std::string text, ReadTextFile(path));
  auto file = wire::DecodeCluster(std::move(text), nodes, &pods, &groups);
  if (!file) return tl::unexpected(std::move(file).error().Within(path));
  ClusterState state;
  BERTH_TRY_STATUS(state.Apply(file->events));
  auto start = std::make_shared<StartState>();
  start->events_ = std::move(file->events);
  const auto snapshot = state.Current();
  if (const std::string why = WhyNoneIsFree(*snapshot); !why.empty()) {
    return Invalid(path + ": want a GPU that tasks can take, got none: " + why);
  }
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    const Node& node = snapshot->node(i);
    const NodeSpec& spec = node.spec();
    start->pods_ += node.pods().size();
    start->nodes_.push_back({spec.name, spec.cpu_milli, spec.memory_bytes >> 20,
                             static_cast<int>(spec.gpus.size()) + spec.places.count, spec.gpu_model,
                             FreeMilli(node)});
  }
  return start;
}

std::vector<ClusterEvent> StartState::Events(const std::vector<std::string>& names) const {
  std::map<std::string, std::string> renamed;
  for (std::size_t i = 0; i < nodes_.size(); ++i) renamed[nodes_[i].name] = names[i];
  std::vector<ClusterEvent> events = events_;
  for (ClusterEvent& event : events) {
    std::string* const node = NodeIn(event);
    if (node == nullptr) continue;
    const auto known = renamed.find(*node);  // pods may be on nodes that are not there
    if (known != renamed.end()) *node = known->second;
  }
  return events;
}

}  // namespace berth::replay
