// SPDX-License-Identifier: Apache-2.0
//
// GpuConditions: what the conditions of a Node say of its GPUs, and what is closed for it.
//
// A message names GPUs if each of its statements, which end at ';', has the UUID of one as NVIDIA's
// driver writes it, and no text that begins like one. NVSentinel writes one statement per fault,
//
//   ErrorCode:79 PCI:0000:3b:00 GPU_UUID:GPU-455d8f70-... <text> Recommended Action=RESTART_BM;
//
// and "..." as the last one where it left some out, which names nothing (NVIDIA/NVSentinel,
// platform-connectors/pkg/connectors/kubernetes/process_node_events.go). An index or a PCI address
// names none: Berth does not know which GPU of the device plugin has it.
//
// The named GPUs alone are closed where no pod can get one of them, that is, where
//
//   the agent of the node hands out the GPUs that Berth chose, and they are among its GPUs; or
//   the device plugin offers as many fewer. These are taken to be the named ones.
//
// Anything else closes the node.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node/node.h"
#include "config/config.h"

namespace berth::wire {

// Not thread-safe.
class GpuConditions {
 public:
  explicit GpuConditions(const std::vector<ConditionRule>& rules) : rules_(rules) {}

  // One condition of the node. message: its own, "" without one.
  void Read(std::string_view type, std::string_view status, std::string_view message);

  // Closes what they name in a node that is complete but for that. as_chosen: its agent hands out
  // the GPUs that Berth chose.
  void CloseIn(NodeSpec& spec, bool as_chosen) const;

 private:
  const std::vector<ConditionRule>& rules_;
  std::string of_node_, of_gpus_;  // "TYPE=STATUS", the first by name; empty = none
  std::set<std::string> uuids_;    // that the conditions of GPUs name
};

// The UUIDs that a message names; nothing where it names none, or not all that it speaks of.
std::optional<std::set<std::string>> NamedGpus(std::string_view message);

// The annotation berth.dev/gpu-health of a Node: the GPUs and MIG devices that the device plugin
// calls unhealthy, by its IDs, joined by commas. The node's agent writes it.

// The UUIDs of the node's GPUs by index, joined by commas.
inline constexpr std::string_view kGpuUuidsKey = "berth.dev/gpu-uuids";
inline constexpr std::string_view kGpuHealthKey = "berth.dev/gpu-health";
inline constexpr std::size_t kMostUnwellIds = 256;  // of one node, those of MIG devices among them

// Closes these GPUs and MIG devices in a node that says their names (CloseNamed); others are passed
// over. Returns what could not be read, with the key; the rest counts. Empty = nothing.
std::string CloseUnwell(std::string_view ids, NodeSpec& spec);

}  // namespace berth::wire
