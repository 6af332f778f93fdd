// SPDX-License-Identifier: Apache-2.0
//
// WriteContext: what everyone needs who writes to the API server.
#pragma once

#include <functional>

#include "base/clock.h"
#include "server/kube/client/api_client.h"
#include "server/kube/lead/write_fence.h"

namespace berth::kube {

// References: they outlive its owner.
struct WriteContext {
  ApiClient& client;
  const Clock& clock;
  WriteFence& fence;
  std::function<void(Duration)> sleep;
};

}  // namespace berth::kube
