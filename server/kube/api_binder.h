// SPDX-License-Identifier: Apache-2.0
//
// ApiBinder: binds pods through the API server - one Binding that carries the pod's UID and the
// grants as annotations, so that node and devices are written in one atomic step.
//
// What the API server refuses for now (429, 5xx, no answer) is sent again until the deadline; that
// is safe, because a Binding that was taken before is answered 409.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "server/extender/ports.h"
#include "server/kube/api_client.h"
#include "server/kube/write_fence.h"
#include "server/wire/pod_rules.h"

namespace berth::kube {

// Any thread may call it.
class ApiBinder final : public PodBinder {
 public:
  // References: they outlive the binder.
  struct Parts {
    ApiClient& client;
    const wire::PodRules& rules;
    const Clock& clock;
    const WriteFence& fence;
    std::function<void(Duration)> sleep;
  };

  explicit ApiBinder(Parts parts) : parts_(std::move(parts)) {}

  Status Bind(const BindOrder& order) override;
  Result<PodTruth> Find(const PodId& id) override;

  struct Stats {
    std::uint64_t retries = 0;
    std::uint64_t in_doubt = 0;  // binds that ended with kUnavailable
  };
  [[nodiscard]] Stats stats() const { return {retries_.load(), in_doubt_.load()}; }

 private:
  // When the next attempt may start; nothing when the last word is spoken.
  struct Attempt {
    Status status;
    bool final = false;
    bool in_doubt = false;  // it may have been carried out
    Duration wait{};
  };
  Attempt TryOnce(const ApiRequest& request, int attempt);

  const Parts parts_;
  std::atomic<std::uint64_t> retries_{0};
  std::atomic<std::uint64_t> in_doubt_{0};
};

}  // namespace berth::kube
