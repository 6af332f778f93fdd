// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/bind_note.h"

#include <memory>
#include <utility>
#include <variant>

#include "cluster/state/cluster_state.h"
#include "server/wire/file/cluster_file.h"

namespace berth::kube {
namespace {

constexpr const char* kNoDevices = "no devices";

}  // namespace

// What counts is what it holds and which gang it is of: the pod itself is asked for when it is
// needed.
std::string NoteOfBind(const BindOrder& order) {
  const Placement& placement = order.placement;
  if (placement.grants.empty() && placement.mig.empty() && placement.places == 0) return kNoDevices;
  static const auto no_nodes = std::make_shared<const Snapshot>();
  PodRecord record;
  record.placement = placement;
  record.state = PodState::kBound;
  record.pod.id = order.pod.id;
  record.pod.shape = order.pod.shape;
  record.pod.gang = order.pod.gang;
  record.pod.priority = order.pod.priority;
  return wire::EncodeCluster({no_nodes, {std::move(record)}});
}

Result<std::optional<PodBound>> BindOfNote(const std::string& note, const wire::NodeRules& rules) {
  if (note == kNoDevices) return std::optional<PodBound>();
  BERTH_TRY(wire::ClusterFile file, wire::DecodeCluster(note, rules));
  if (file.events.size() == 1) {
    if (auto* const bound = std::get_if<PodBound>(&file.events.front())) {
      return std::optional(std::move(*bound));
    }
  }
  return Invalid("want one pod, got something else");
}

}  // namespace berth::kube
