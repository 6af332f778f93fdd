// SPDX-License-Identifier: Apache-2.0
#include "node/interposer/ports.h"

namespace berth::node {

std::multiset<Instant>::const_iterator CallWatch::Begin(Duration limit) {
  const Instant end = Instant::clock::now() + limit;
  const MutexLock lock(mutex_);
  return ends_.insert(end);
}

void CallWatch::End(std::multiset<Instant>::const_iterator call) {
  const MutexLock lock(mutex_);
  ends_.erase(call);
}

bool CallWatch::InTime(Duration slack) const {
  const Instant now = Instant::clock::now();
  const MutexLock lock(mutex_);
  return ends_.empty() || *ends_.begin() + slack >= now;
}

bool CallWatch::Idle() const {
  const MutexLock lock(mutex_);
  return ends_.empty();
}

}  // namespace berth::node
