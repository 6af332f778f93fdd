// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/retry.h"

#include <algorithm>
#include <utility>

namespace berth::kube {

bool IsTransient(int status) { return status == 408 || status == 429 || status >= 500; }

Duration Backoff::Next(std::optional<Duration> at_least) {
  Duration wait = first_;
  for (int i = 0; i < waits_ && wait < longest_; ++i) wait *= 2;
  wait = std::min(wait, longest_);
  ++waits_;
  const double share = 0.5 + random_.Unit() / 2;
  wait = std::chrono::duration_cast<Duration>(wait * share);
  return std::max(wait, at_least.value_or(Duration::zero()));
}

Status FencedRetry(const WriteContext& write, Instant deadline, Backoff backoff,
                   const std::function<Attempt(Duration left)>& attempt) {
  Attempt last{Fail(Errc::kDeadline, "this process is no longer the leader")};
  Duration wait{};
  while (true) {
    const Instant end = std::min(deadline, write.fence.WritableUntil());
    const Instant now = write.clock.Now();
    if (end <= now + wait) return std::move(last.status);
    if (wait > Duration::zero()) write.sleep(wait);
    last = attempt(end - now - wait);
    if (last.status || last.final) return std::move(last.status);
    wait = backoff.Next(last.retry_after);
  }
}

}  // namespace berth::kube
