// SPDX-License-Identifier: Apache-2.0
#include "server/kube/leader_elector.h"

#include <utility>

namespace berth::kube {

LeaderElector::LeaderElector(ApiClient& client, const Clock& clock, Options options)
    : client_(client), clock_(clock), options_(std::move(options)) {}

Instant LeaderElector::WritableUntil() const {
  const MutexLock lock(mutex_);
  return writable_until_;
}

void LeaderElector::SetWritableUntil(Instant until) {
  const MutexLock lock(mutex_);
  writable_until_ = until;
}

std::string LeaderElector::Collection() const {
  return "/apis/coordination.k8s.io/v1/namespaces/" + options_.namespace_name + "/leases";
}

Status LeaderElector::Step() {
  BERTH_TRY(std::optional<wire::Lease> held, Read());
  const Instant now = clock_.Now();
  wire::Lease lease = held.value_or(wire::Lease{});
  const bool ours = lease.holder == options_.identity;
  if (lease.resource_version != observed_version_) {
    observed_version_ = lease.resource_version;
    observed_at_ = now;
  }
  if (!ours && !lease.holder.empty()) {
    SetWritableUntil(Instant::min());
    if (now < observed_at_ + std::chrono::seconds(lease.seconds)) {
      return Fail(Errc::kConflict, "lease " + options_.name + " is held by " + lease.holder);
    }
  }
  const std::string time = wire::MicroTime(clock_.Wall());
  if (!ours) {
    if (held) ++lease.transitions;
    lease.acquire_time = time;
  }
  lease.renew_time = time;
  lease.holder = options_.identity;
  lease.seconds =
      static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(options_.lease).count());
  return Write(std::move(lease));
}

Result<std::optional<wire::Lease>> LeaderElector::Read() {
  ApiRequest request;
  request.path = Collection() + "/" + options_.name;
  request.timeout = options_.lease / 3;
  BERTH_TRY(const ApiResponse response, client_.Send(request));
  if (response.status == 404) return std::optional<wire::Lease>();
  if (!response.ok()) {
    return Fail(Errc::kUnavailable, "lease " + options_.name + ": " + RefusalText(response));
  }
  BERTH_TRY(wire::Lease lease, wire::DecodeLease(response.body));
  return std::optional<wire::Lease>(std::move(lease));
}

// The lease runs from before the request was sent: the API server took it later than that.
Status LeaderElector::Write(wire::Lease lease) {
  lease.namespace_name = options_.namespace_name;
  lease.name = options_.name;
  const bool exists = !lease.resource_version.empty();
  ApiRequest request;
  request.method = exists ? "PUT" : "POST";
  request.path = exists ? Collection() + "/" + options_.name : Collection();
  request.body = wire::EncodeLease(lease);
  request.timeout = options_.lease / 3;
  const Instant sent = clock_.Now();
  BERTH_TRY(const ApiResponse response, client_.Send(request));
  if (!response.ok()) {
    return Fail(Errc::kConflict, "lease " + options_.name + ": " + RefusalText(response));
  }
  constexpr Duration kMargin = std::chrono::seconds(1);  // for clocks that run unequally fast
  SetWritableUntil(lease.holder.empty() ? Instant::min() : sent + options_.lease - kMargin);
  return {};
}

void LeaderElector::Release() {
  SetWritableUntil(Instant::min());
  Result<std::optional<wire::Lease>> held = Read();
  if (!held || !*held || (*held)->holder != options_.identity) return;
  wire::Lease lease = **std::move(held);
  lease.holder.clear();
  lease.seconds = 1;
  lease.renew_time = wire::MicroTime(clock_.Wall());
  (void)Write(std::move(lease));  // else the others wait until it has run out
}

}  // namespace berth::kube
