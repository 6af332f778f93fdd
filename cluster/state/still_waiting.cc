// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/still_waiting.h"

#include <string_view>
#include <unordered_set>
#include <utility>

namespace berth {
namespace {

const PodRequest& RequestOf(const WaitingPod& waiting) { return *waiting.pod; }
const PodRequest& RequestOf(const std::shared_ptr<const PodRequest>& pod) { return *pod; }

template <class List>
List WithoutBound(List listed, const Snapshot& snapshot) {
  if (listed.empty()) return listed;
  std::unordered_set<std::string_view> uids, bound;
  for (const auto& waiting : listed) uids.insert(RequestOf(waiting).id.uid);
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    for (const auto& record : snapshot.node(i).pods()) {
      const std::string& uid = record->pod.id.uid;
      if (record->state == PodState::kBound && uids.contains(uid)) bound.insert(uid);
    }
  }
  std::erase_if(listed,
                [&](const auto& waiting) { return bound.contains(RequestOf(waiting).id.uid); });
  return listed;
}

}  // namespace

std::vector<WaitingPod> StillWaiting(std::vector<WaitingPod> listed, const Snapshot& snapshot) {
  return WithoutBound(std::move(listed), snapshot);
}

WaitingPods::Pods StillWaiting(WaitingPods::Pods listed, const Snapshot& snapshot) {
  return WithoutBound(std::move(listed), snapshot);
}

}  // namespace berth
