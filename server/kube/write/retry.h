// SPDX-License-Identifier: Apache-2.0
//
// Which refusals of the API server are worth another attempt, how long to wait before it, and until
// when a write may be tried.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "server/kube/client/api_client.h"
#include "server/kube/lead/write_journal.h"

namespace berth::kube {

// WriteContext: what everyone needs who writes to the API server.

// References: they outlive its owner.
struct WriteContext {
  ApiClient& client;
  const Clock& clock;
  WriteFence& fence;
  std::function<void(Duration)> sleep;
};

// 408, 429 and 5xx: the same request may be accepted later.
bool IsTransient(int status);

// Waits that double from `first` to `longest`. Each is spread over its upper half, because many
// requests fail together.
class Backoff {
 public:
  Backoff(Duration first, Duration longest, std::uint64_t seed)
      : first_(first), longest_(longest), random_(seed) {}

  // at_least: what the API server asks for (Retry-After).
  Duration Next(std::optional<Duration> at_least = std::nullopt);
  // The next wait is the first again.
  void Reset() { waits_ = 0; }

 private:
  const Duration first_, longest_;
  Random random_;
  int waits_ = 0;
};

// How one attempt ended.
struct Attempt {
  Status status;
  bool final = false;  // another attempt would change nothing
  std::optional<Duration> retry_after = {};
};

// Calls `attempt` with the time that is left, until one succeeds or is final, or the next could not
// begin before the deadline and while the fence lets this process write. Returns the status of the
// last one; kDeadline when there was none.
Status FencedRetry(const WriteContext& write, Instant deadline, Backoff backoff,
                   const std::function<Attempt(Duration left)>& attempt);

}  // namespace berth::kube
