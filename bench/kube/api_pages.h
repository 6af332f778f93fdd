// SPDX-License-Identifier: Apache-2.0
//
// The answers of a large cluster's API server: pages of nodes and pods in their usual size, with
// managedFields, and watch events of pods that change.
#pragma once

#include <cstddef>
#include <string>

namespace berth::kube_bench {

enum class Kind { kNode, kPod };

// About 3 KB for a pod, 6 KB for a node.
void AppendObject(std::string& out, Kind kind, std::size_t number, std::size_t version);

// {"kind":"PodList",...} with objects begin..end; `next` "" = the last page.
std::string ListPageOf(Kind kind, std::size_t begin, std::size_t end, const std::string& next);

// One line of a watch.
std::string EventOf(std::size_t pod, std::size_t version);

}  // namespace berth::kube_bench
