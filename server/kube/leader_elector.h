// SPDX-License-Identifier: Apache-2.0
//
// LeaderElector: of several processes one leads, by a Lease on the API server.
//
// It leads for `lease` from the moment it sent the last write that the API server took, less a
// margin; others take the lease over after they have seen it unchanged for that long. A process
// that comes back under the same identity leads on at once.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "server/kube/api_client.h"
#include "server/kube/write_fence.h"
#include "server/wire/lease_json.h"

namespace berth::kube {

// Step and Release from one thread; the rest from any.
class LeaderElector final : public WriteFence {
 public:
  struct Options {
    std::string namespace_name;
    std::string name;
    std::string identity;                       // of this process, unique in the cluster
    Duration lease = std::chrono::seconds(15);  // at least 5 s
  };

  // References: they outlive the elector.
  LeaderElector(ApiClient& client, const Clock& clock, Options options);

  // Takes the lease when it is free, renews it when it is ours. Blocks for one or two requests;
  // call it every RetryPeriod(). Error: why this process does not lead, or could not renew.
  Status Step() BERTH_EXCLUDES(mutex_);
  // Gives the lease up, so that the next process need not wait.
  void Release() BERTH_EXCLUDES(mutex_);

  [[nodiscard]] Duration RetryPeriod() const { return options_.lease / 8; }
  [[nodiscard]] bool leading() const { return clock_.Now() < WritableUntil(); }
  [[nodiscard]] Instant WritableUntil() const override BERTH_EXCLUDES(mutex_);

 private:
  Result<std::optional<wire::Lease>> Read();
  Status Write(wire::Lease lease);
  void SetWritableUntil(Instant until) BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::string Collection() const;

  ApiClient& client_;
  const Clock& clock_;
  const Options options_;
  std::string observed_version_;  // of the lease, when it was last seen to change...
  Instant observed_at_{};         // ... which was then
  mutable Mutex mutex_;
  Instant writable_until_ BERTH_GUARDED_BY(mutex_) = Instant::min();
};

}  // namespace berth::kube
