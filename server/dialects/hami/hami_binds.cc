// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/hami/hami_binds.h"

#include <algorithm>

#include "base/cleanup.h"
#include "server/dialects/hami/hami_binding.h"
#include "server/kube/write/api_binder.h"

namespace berth::dialects {

Status HamiBinds::AroundBind(const BindOrder& order, const std::function<Status()>& bind) {
  if (!SpeaksHami(order.placement, order.node)) return bind();
  const std::string pod = order.pod.id.full_name();
  {
    const MutexLock lock(mutex_);
    binding_.insert(pod);
  }
  const Cleanup leave([&] {
    const MutexLock lock(mutex_);
    binding_.erase(binding_.find(pod));
  });
  return BindUnderLock(order, bind);
}

bool HamiBinds::IsBinding(const std::string& full_name) const {
  const MutexLock lock(mutex_);
  const auto is_it = [&](const Locked& left) { return left.pod.full_name() == full_name; };
  return binding_.contains(full_name) || std::ranges::any_of(left_, is_it);
}

Status HamiBinds::BindUnderLock(const BindOrder& order, const std::function<Status()>& bind) {
  const PodId& id = order.pod.id;
  HamiNodeLock::Held held{order.node.name};
  Status bound = lock_.Take(id, order.deadline, held);
  if (bound) {
    {
      const MutexLock lock(mutex_);  // this bind now has the lock that an earlier one left
      std::erase_if(
          left_, [&](const Locked& left) { return left.pod == id && left.held.node == held.node; });
    }
    bound = bind();
  }
  if (!bound && !held.text.empty()) (void)LetGo({id, std::move(held)});  // else Upkeep does
  return bound;
}

bool HamiBinds::LetGo(Locked locked) {
  const Result<PodTruth> truth = kube::FindPod(write_.client, rules_, locked.pod);
  const bool known = truth || truth.error().code == Errc::kNotFound;
  if (truth && truth->placement && truth->placement->node == locked.held.node) return true;
  if (known && lock_.Release(locked.held)) return true;
  const MutexLock lock(mutex_);
  left_.push_back(std::move(locked));
  return false;
}

void HamiBinds::Upkeep() {
  std::vector<Locked> left;
  {
    const MutexLock lock(mutex_);
    left.swap(left_);
  }
  auto next = left.begin();
  while (next != left.end() && LetGo(std::move(*next++))) {
  }
  const MutexLock lock(mutex_);
  left_.insert(left_.end(), next, left.end());
}

}  // namespace berth::dialects
