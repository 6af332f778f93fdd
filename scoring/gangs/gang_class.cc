// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_class.h"

#include <algorithm>
#include <tuple>

#include "cluster/values/alike.h"
#include "scoring/admission.h"
#include "scoring/explain/other_limits.h"
#include "scoring/gangs/gang_devices.h"

namespace berth {
namespace {

std::int64_t MilliOf(const RequestShape& shape) {
  // A device is less than a GPU; how much less is not worth knowing here.
  if (const MigSlices* mig = shape.mig()) return std::int64_t{kMilliPerGpu} / 2 * mig->count();
  const bool by_memory = shape.is_share() && shape.milli_per_gpu() == 0;
  if (by_memory) return std::int64_t{kMilliPerGpu} / 2 * shape.gpu_count();
  return std::int64_t{shape.gpu_count()} * shape.milli_per_gpu();
}

void FindRoom(const std::shared_ptr<const Snapshot>& snapshot, GangRoom& memo, const GangAsk& ask,
              const GangMember& member, GangClass& alike) {
  const PodRequest& pod = member.pod;
  alike.room = memo.Of(snapshot, pod.shape);
  const bool admission_matters = AdmissionMatters(*snapshot, pod);
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    if (alike.room[i] == 0) continue;
    const Node& node = snapshot->node(i);
    alike.room[i] = std::min(alike.room[i], PodsByOthers(node, pod));
    if (admission_matters && Admits(node.spec(), pod) != Reason::kFits) alike.room[i] = 0;
  }
  for (const NodeIndex node : member.excluded) alike.room[node] = 0;
  if (member.outside != nullptr) {
    for (const NodeIndex node : *member.outside) alike.room[node] = 0;
  }
  if (!pod.refusal.empty()) std::ranges::fill(alike.room, 0);
  if (member.claims == kNoClaims) return;
  const int all = static_cast<int>(ask.members.size());
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    alike.room[i] = ask.devices->Room(i, member.claims, std::min(alike.room[i], all));
  }
}

}  // namespace

std::vector<RoleNeed> NeedsOf(const GangAsk& ask, std::span<const GangClass> classes) {
  std::vector<RoleNeed> needs;
  for (const GangRole& role : ask.roles) {
    RoleNeed need{.classes = {}, .members = role.minimum};
    for (const GangMember& member : ask.members) {
      if (member.fixed != kNoNode && member.pod.role == role.name) --need.members;
    }
    for (std::size_t c = 0; c < classes.size(); ++c) {
      if (classes[c].pod->role == role.name) need.classes.push_back(c);
    }
    if (need.members > 0) needs.push_back(std::move(need));
  }
  return needs;
}

std::vector<std::size_t> ByRank(std::span<const GangMember> members) {
  std::vector<std::size_t> order(members.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) {
    return std::tuple<int, std::string_view>(members[i].rank, members[i].pod.id.uid);
  });
  return order;
}

std::vector<GangClass> ClassesOf(const std::shared_ptr<const Snapshot>& snapshot, GangRoom& room,
                                 const GangAsk& ask, std::span<const std::size_t> by_rank) {
  const std::vector<GangMember>& members = ask.members;
  std::vector<GangClass> classes;
  for (const std::size_t i : by_rank) {
    if (members[i].fixed != kNoNode) continue;
    auto alike = std::ranges::find_if(classes, [&](const GangClass& other) {
      const GangMember& first = members[other.members.front()];
      return SamePodKind(first.pod, members[i].pod) && first.excluded == members[i].excluded &&
             first.outside == members[i].outside && first.claims == members[i].claims &&
             (ask.roles.empty() || first.pod.role == members[i].pod.role);
    });
    if (alike == classes.end()) {
      alike =
          classes.insert(classes.end(), GangClass{&members[i].pod, {}, {}, 0, members[i].claims});
      alike->milli = MilliOf(members[i].pod.shape);
      FindRoom(snapshot, room, ask, members[i], *alike);
    }
    alike->members.push_back(i);
  }
  // Ties stay in the order of the lowest ranks.
  std::ranges::stable_sort(classes, {}, [&](const GangClass& of) {
    const RequestShape& shape = of.shape();
    const auto nodes = std::ranges::count_if(of.room, [](int pods) { return pods > 0; });
    return std::tuple(-of.milli, of.claims == kNoClaims, !shape.links.limits(),
                      shape.models.empty(), -shape.cpu_milli, nodes);
  });
  return classes;
}

}  // namespace berth
