// SPDX-License-Identifier: Apache-2.0
//
// What the verbs do for pods that wait: room that becomes free is kept for those who came first
// (earmark_table.h).
#include <utility>

#include "server/extender/extender.h"

namespace berth {

Extender::Moment Extender::WithEarmarks(Moment now, EarmarkLine::Scope scope) {
  const std::shared_ptr<const KeptNodes> kept = TakeKept(now);
  now.reservations = earmarks_.On(
      now.snapshot, kept, now.policy->earmarks, {parts_.clock.Now(), parts_.clock.Wall()},
      [this](const PodRequest& pod) { return StillWaits(pod); },
      [this](const std::vector<PodId>& pods) { Wake(pods); }, scope);
  if (parts_.gangs != nullptr) parts_.gangs->Respect(now.reservations);
  return now;
}

void Extender::LookAtEarmarks() {
  const Moment now{Current(), policy()};
  StandUnasked(now);
  (void)WithEarmarks(now, EarmarkLine::Scope::kAll);
}

bool Extender::StillWaits(const PodRequest& pod) const {
  if (parts_.state.FindPod(pod.id.uid)) return false;
  return parts_.waiting == nullptr || !parts_.watches_arrivals ||
         parts_.waiting->Find(pod.id.uid).has_value();
}

void Extender::StandInLine(const Moment& now, const PodRequest& pod) {
  if (!now.policy->earmarks || !pod.refusal.empty() || !pod.shape.wants_gpu()) return;
  auto waits = pending_.Find(pod.id.uid);
  if (waits == nullptr) return;
  const WallTime since = CreatedOf(pod.id).value_or(parts_.clock.Wall());
  earmarks_.Stand({{std::move(waits)}, since}, now.snapshot);
}

// kube-scheduler counts GPUs too where the kubelet has them, and asks nobody about a pod that all
// nodes have too few for. What has room at this moment it would have taken: what keeps the pod from
// there Berth does not know.
void Extender::StandUnasked(const Moment& now) {
  if (!now.policy->earmarks || parts_.waiting == nullptr || !parts_.watches_arrivals) return;
  if (!earmarks_.IsTimeForUnasked(parts_.clock.Now())) return;
  const std::set<std::string> askers = Askers();
  for (auto& [pod, created] :
       parts_.waiting->LackingRoom(EarmarkTable::kMostUnasked, EarmarkTable::kMostOfNamespace)) {
    if (!askers.contains(pod->scheduler) || parts_.state.FindPod(pod->id.uid)) continue;
    earmarks_.Stand({{std::move(pod)}, created}, now.snapshot);
  }
}

void Extender::TakeUpGangs(GangActions& actions) {
  if (!policy()->earmarks) return;
  for (auto& [members, since] : actions.without_room) {
    earmarks_.Stand({std::move(members), since.value_or(parts_.clock.Wall())}, Current());
  }
  for (std::string& gang : actions.with_room) earmarks_.Leave(std::move(gang));
}

}  // namespace berth
