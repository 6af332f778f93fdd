// SPDX-License-Identifier: Apache-2.0
#include "server/why/edited_nodes.h"

#include <algorithm>

#include "scoring/explain/node_report.h"

namespace berth::wire {

Json EditedNodesJson(const EditedNodes& nodes) {
  return {{"added", nodes.added},
          {"removed", nodes.removed},
          {"pods_lost", nodes.pods_lost},
          {"gpu_pods_lost", nodes.gpu_pods_lost}};
}

std::string TextOf(const EditedNodes& nodes) {
  constexpr std::size_t kTold = 5;
  std::string text;
  if (!nodes.added.empty()) {
    text += CountText(std::ssize(nodes.added), "node") + " added: " + nodes.added.front();
    if (nodes.added.size() > 1) text += " to " + nodes.added.back();
    text += "\n";
  }
  if (nodes.removed.empty()) return text;
  text += CountText(std::ssize(nodes.removed), "node") + " removed: ";
  if (nodes.pods_lost == 0) return text + "no pod ran there\n";
  text += CountText(nodes.pods_lost, "pod") + " lost with it, " +
          std::to_string(nodes.gpu_pods_lost.size()) + " with GPUs";
  for (std::size_t i = 0; i < std::min(kTold, nodes.gpu_pods_lost.size()); ++i) {
    text += (i == 0 ? " (" : ", ") + nodes.gpu_pods_lost[i];
  }
  if (nodes.gpu_pods_lost.size() > kTold) text += ", ...";
  if (!nodes.gpu_pods_lost.empty()) text += ")";
  return text + "; this plan does not place them again\n";
}

}  // namespace berth::wire
