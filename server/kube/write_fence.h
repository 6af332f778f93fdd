// SPDX-License-Identifier: Apache-2.0
//
// WriteFence: until when this process may write placements. Two processes that both place pods from
// caches of their own would grant one GPU twice.
#pragma once

#include "base/clock.h"

namespace berth::kube {

// Any thread may call it.
class WriteFence {
 public:
  virtual ~WriteFence() = default;
  // A write has to be over by then. Instant::min() = not at all, Instant::max() = no limit.
  [[nodiscard]] virtual Instant WritableUntil() const = 0;
};

}  // namespace berth::kube
