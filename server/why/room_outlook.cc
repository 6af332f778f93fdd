// SPDX-License-Identifier: Apache-2.0
#include "server/why/room_outlook.h"

#include <utility>

namespace berth {

std::vector<RoomWithin> RoomOutlook::Of(const Extender& extender) {
  {
    const MutexLock lock(mutex_);
    if (clock_.Now() < next_) return found_;
    next_ = clock_.Now() + kEvery;  // others take what was found last while this is found
  }
  std::vector<RoomWithin> found = extender.WouldBeIdle(extender.Now(), kTime);
  const MutexLock lock(mutex_);
  found_ = std::move(found);
  return found_;
}

}  // namespace berth
