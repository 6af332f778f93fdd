// SPDX-License-Identifier: Apache-2.0
#include "server/kube/lead/leader_elector.h"

#include <utility>

#include "base/text.h"

namespace berth::kube {
namespace {

constexpr int kGone = 404, kConflict = 409;
// What Release writes. A Lease without a holder that lasts longer was not released by one.
constexpr int kReleasedSeconds = 1;
constexpr std::size_t kMostHolderBytes = 253;
constexpr Duration kMargin = std::chrono::seconds(1);  // for clocks that run unequally fast

constexpr Duration kLabelTimeout = std::chrono::seconds(3);

}  // namespace

LeaderElector::LeaderElector(ApiClient& client, const Clock& clock, Options options)
    : client_(client), clock_(clock), options_(std::move(options)) {}

Instant LeaderElector::WritableUntil() const {
  const MutexLock lock(mutex_);
  return writable_until_;
}

bool LeaderElector::another_leads() const {
  const MutexLock lock(mutex_);
  return !leader_.empty();
}

std::string LeaderElector::leader() const {
  const MutexLock lock(mutex_);
  return leader_;
}

std::uint64_t LeaderElector::term() const {
  const MutexLock lock(mutex_);
  return term_;
}

std::size_t LeaderElector::WriteBegins(const NoteOfWrite& note) {
  WriteJournal* const journal = options_.journal;
  const std::string text = journal != nullptr && note ? note() : "";
  {
    const MutexLock lock(mutex_);
    ++writes_;
  }
  return journal == nullptr ? 0 : journal->Begin(text);
}

void LeaderElector::WriteEnds(std::size_t write, bool answered) {
  const Instant by = answered ? Instant::min() : clock_.Now() + options_.lease;
  if (options_.journal != nullptr) options_.journal->End(write, by);
  const MutexLock lock(mutex_);
  --writes_;
  if (!answered) in_doubt_until_ = by;
}

void LeaderElector::EndLeading() {
  const MutexLock lock(mutex_);
  writable_until_ = Instant::min();
}

void LeaderElector::Lead(Instant until, bool is_new_term) {
  const MutexLock lock(mutex_);
  writable_until_ = until;
  if (is_new_term || term_ == 0) ++term_;
}

std::string LeaderElector::Collection() const {
  return "/apis/coordination.k8s.io/v1/namespaces/" + options_.namespace_name + "/leases";
}

int LeaderElector::LeaseSeconds() const {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(options_.lease).count());
}

void LeaderElector::Observe(const std::string& version) {
  if (version == observed_version_) return;
  observed_version_ = version;
  observed_at_ = clock_.Now();
}

Status LeaderElector::Step() {
  found_another_.clear();
  Status status = TakeOrRenew();
  const MutexLock lock(mutex_);
  leader_ = found_another_;
  return status;
}

// A conflict ends leading; but the lease may be ours all the same, since the client sends a request
// again whose connection was closed: so it is read once more.
Status LeaderElector::TakeOrRenew() {
  for (int attempt = 0;; ++attempt) {
    BERTH_TRY(std::optional<wire::Lease> held, Read());
    if (!held) return CreateUnheld();
    const bool is_new_term = held->holder != options_.identity;
    BERTH_TRY(wire::Lease lease, Claim(*std::move(held)));
    const Instant sent = clock_.Now();  // the API server takes the lease later than that
    BERTH_TRY(const ApiResponse response, Write(std::move(lease)));
    if (response.ok()) {
      Lead(sent + options_.lease - kMargin, is_new_term);
      return {};
    }
    if (response.status == kConflict || response.status == kGone) EndLeading();
    if (response.status != kConflict || attempt > 0) {
      return Fail(Errc::kConflict, "lease " + options_.name + ": " + RefusalText(response));
    }
  }
}

Result<wire::Lease> LeaderElector::Claim(wire::Lease lease) {
  Observe(lease.resource_version);
  const std::string time = wire::MicroTime(clock_.Wall());
  if (lease.holder != options_.identity) {
    EndLeading();
    const bool released = lease.holder.empty() && lease.seconds <= kReleasedSeconds;
    if (!released && clock_.Now() < observed_at_ + std::chrono::seconds(lease.seconds)) {
      found_another_ = Shortened(lease.holder, kMostHolderBytes);
      return Fail(Errc::kConflict,
                  "lease " + options_.name +
                      (lease.holder.empty() ? " is new: a former leader may still write"
                                            : " is held by " + lease.holder));
    }
    ++lease.transitions;
    lease.acquire_time = time;
  }
  lease.renew_time = time;
  lease.holder = options_.identity;
  lease.seconds = LeaseSeconds();
  return lease;
}

Status LeaderElector::CreateUnheld() {
  EndLeading();
  wire::Lease lease;
  lease.seconds = LeaseSeconds();
  lease.acquire_time = lease.renew_time = wire::MicroTime(clock_.Wall());
  BERTH_TRY(const ApiResponse response, Write(std::move(lease)));
  if (!response.ok()) {
    return Fail(Errc::kConflict, "lease " + options_.name + ": " + RefusalText(response));
  }
  if (const auto created = wire::DecodeLease(response.body)) Observe(created->resource_version);
  return Fail(Errc::kConflict, "lease " + options_.name +
                                   " was missing: Berth takes it after the time that a deleted one "
                                   "would still have run");
}

Result<std::optional<wire::Lease>> LeaderElector::Read() {
  ApiRequest request;
  request.path = Collection() + "/" + options_.name;
  request.timeout = options_.lease / 3;
  BERTH_TRY(const ApiResponse response, client_.Send(request));
  if (response.status == kGone) return std::optional<wire::Lease>();
  if (!response.ok()) {
    return Fail(Errc::kUnavailable, "lease " + options_.name + ": " + RefusalText(response));
  }
  BERTH_TRY(wire::Lease lease, wire::DecodeLease(response.body));
  return std::optional<wire::Lease>(std::move(lease));
}

Result<ApiResponse> LeaderElector::Write(wire::Lease lease) {
  lease.namespace_name = options_.namespace_name;
  lease.name = options_.name;
  const bool exists = !lease.resource_version.empty();
  ApiRequest request;
  request.method = exists ? "PUT" : "POST";
  request.path = exists ? Collection() + "/" + options_.name : Collection();
  request.body = wire::EncodeLease(lease);
  request.timeout = options_.lease / 3;
  return client_.Send(request);
}

Status LeaderElector::Release() {
  {
    const MutexLock lock(mutex_);
    writable_until_ = Instant::min();
    if (writes_ > 0 || clock_.Now() < in_doubt_until_) {
      return Fail(Errc::kConflict, "lease " + options_.name +
                                       " is left to expire: a write to the API server may still be "
                                       "running");
    }
  }
  BERTH_TRY(std::optional<wire::Lease> held, Read());
  if (!held || held->holder != options_.identity) return {};
  wire::Lease lease = *std::move(held);
  lease.holder.clear();
  lease.seconds = kReleasedSeconds;
  lease.renew_time = wire::MicroTime(clock_.Wall());
  BERTH_TRY(const ApiResponse response, Write(std::move(lease)));
  if (response.ok() || response.status == kConflict) return {};
  return Fail(Errc::kUnavailable, "lease " + options_.name + ": " + RefusalText(response));
}

LeaderLabel::LeaderLabel(ApiClient& client, const Clock& clock, Options options)
    : client_(client), clock_(clock), options_(std::move(options)) {}

std::optional<bool> LeaderLabel::written() const {
  const State state = state_.load();
  if (state == State::kUnknown) return std::nullopt;
  return state == State::kThere;
}

Status LeaderLabel::Step(bool wanted) {
  if (wanted_ == wanted && clock_.Now() < next_) return newest_;
  if (wanted_ != wanted) state_ = State::kUnknown;
  wanted_ = wanted;
  newest_ = Write(wanted);
  state_ = !newest_ ? State::kUnknown : wanted ? State::kThere : State::kAbsent;
  next_ = clock_.Now() + (newest_ ? options_.again_every : options_.retry_every);
  return newest_;
}

Status LeaderLabel::Write(bool wanted) {
  BERTH_TRY(std::string path, PodPath(options_.namespace_name, options_.pod));
  std::string patch = std::string(R"({"metadata":{"labels":{")") + kLeaderLabel +
                      (wanted ? R"(":"true"}}})" : R"(":null}}})");
  BERTH_TRY(const ApiResponse response,
            client_.Send(MergePatch(std::move(path), std::move(patch), kLabelTimeout)));
  if (response.ok()) return {};
  return Fail(Errc::kUnavailable, "label " + std::string(kLeaderLabel) + " of pod " +
                                      options_.namespace_name + "/" + options_.pod + ": " +
                                      RefusalText(response));
}

}  // namespace berth::kube
