// SPDX-License-Identifier: Apache-2.0
#include "server/extender/gangs/roster/gang_unit.h"

#include "cluster/values/alike.h"

namespace berth {

bool GangWait::IsOut(const std::string& uid, const std::string& node, Instant now) const {
  return std::ranges::any_of(out, [&](const Out& known) {
    return known.node == node && now < known.until && known.uids.contains(uid);
  });
}

std::vector<GangWait::Out>::iterator GangWait::FindOut(const GangPlanned::Member& member) {
  return std::ranges::find_if(out, [&member](const Out& known) {
    return known.node == member.node && SamePodKind(*known.pod, *member.pod);
  });
}

void GangWait::TakeOut(const GangPlanned::Member& member, int asks, Instant now) {
  auto known = FindOut(member);
  if (known == out.end()) {
    if (out.size() >= gangs::kMostOut) out.erase(out.begin());
    known = out.insert(out.end(), Out{{.node = member.node}, member.pod});
  }
  known->pod = member.pod;
  known->uids.insert(member.pod->id.uid);
  known->Take(asks, now);
}

void GangUnit::HasCome(const PodRequest& pod, Instant now) {
  over_since = kNotOver;
  may_give_way = false;
  wait.asked.insert(pod.id.uid);
  const bool is_absent = wait.absent.erase(pod.id.uid) > 0;
  if (!is_absent || !wait.absent.empty() || wait.absent_differ) return;
  wait.not_before = std::min(wait.not_before, now);
}

void GangUnit::Heed(const PodRequest& pod) {
  roll.says = pod.gang;
  roll.scheduler = pod.scheduler;
}

void GangUnit::ComesBack(const PodRequest& pod, Instant now) {
  const auto planned = plan.members.find(pod.id.uid);
  if (planned == plan.members.end()) return;
  const GangPlanned::Member& member = planned->second;
  if (member.asks == 0 || now - member.answered < gangs::kComesBackAfter) return;
  // kube-scheduler binds none of its own gangs' pods while it finds no node for another of them.
  if (pod.gang.comes_at_once() && plan.held() == 0 && !roll.began) return;
  const bool is_known = wait.FindOut(member) != wait.out.end();
  const int asks = member.asks + 1;
  if (asks >= (is_known ? 2 : gangs::kAsksWithoutBind)) wait.TakeOut(member, asks, now);
}

}  // namespace berth
