// SPDX-License-Identifier: Apache-2.0
#include "server/extender/waiting_line.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace berth {

WaitingLine LineOf(std::vector<WaitingPod> all, const Snapshot& snapshot, const PodGroups* groups,
                   std::size_t most) {
  WaitingLine line;
  line.gated = static_cast<std::size_t>(std::erase_if(all, [](const auto& p) { return p.gated; }));
  std::unordered_set<std::string_view> placed;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    for (const auto& record : snapshot.node(i).pods()) placed.insert(record->pod.id.uid);
  }
  std::erase_if(all, [&placed](const auto& p) { return placed.contains(p.pod->id.uid); });
  // They are sorted by name. A pod of unknown age comes last.
  std::ranges::stable_sort(all, [](const WaitingPod& a, const WaitingPod& b) {
    const auto age = [](const WaitingPod& p) { return p.created.value_or(WallTime::max()); };
    return std::tuple(-std::int64_t{a.pod->priority}, age(a)) <
           std::tuple(-std::int64_t{b.pod->priority}, age(b));
  });
  line.beyond = all.size() - std::min(all.size(), most);
  all.resize(all.size() - line.beyond);
  for (const WaitingPod& one : all) {
    PodRequest& pod = line.pods.emplace_back(*one.pod);
    if (groups != nullptr && !pod.gang.empty()) groups->Update(pod.gang);
  }
  return line;
}

}  // namespace berth
