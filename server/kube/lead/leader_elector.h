// SPDX-License-Identifier: Apache-2.0
//
// LeaderElector: of several processes one leads, by a Lease on the API server.
//
// It leads for `lease` from the moment it sent the last write that the API server took, less a
// margin; others take the lease over after they have seen it unchanged for that long. A process
// that comes back under the same identity leads on at once: who gives it that identity makes sure
// that the process before has ended, and that what it had on its way is known (write_journal.h).
//
// A Lease that another process holds, that is deleted, or that somebody else has written since it
// was read, ends leading at once. A Lease that is missing may have been deleted under a leader that
// does not know it yet: it is created without a holder, and nobody takes it before `lease` is over.
// Only a Lease that its holder has released is taken at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "server/kube/client/api_client.h"
#include "server/kube/lead/write_journal.h"
#include "server/wire/api/api_json.h"

namespace berth::kube {

// Step and Release from one thread at a time; the rest from any.
class LeaderElector final : public WriteFence {
 public:
  struct Options {
    std::string namespace_name;
    std::string name;
    std::string identity;                       // of this process, unique in the cluster
    Duration lease = std::chrono::seconds(15);  // at least 5 s
    WriteJournal* journal = nullptr;            // notes the writes; nullptr: nobody does
  };

  // References: they outlive the elector.
  LeaderElector(ApiClient& client, const Clock& clock, Options options);

  // Takes the lease when it is free, renews it when it is ours. Blocks for two requests, in rare
  // cases for four; call it every RetryPeriod(). Error: why this process does not lead, or could
  // not renew.
  Status Step() BERTH_EXCLUDES(mutex_);
  // Ends leading, and gives the lease up, so that the next process need not wait. Error: why the
  // lease is left to run out: a write is on its way, or may be.
  Status Release() BERTH_EXCLUDES(mutex_);

  [[nodiscard]] Duration RetryPeriod() const { return options_.lease / 8; }
  [[nodiscard]] bool leading() const { return clock_.Now() < WritableUntil(); }
  // Whether the newest Step found another process that holds the lease, and may be at work.
  [[nodiscard]] bool another_leads() const BERTH_EXCLUDES(mutex_);
  // Who that is, by its identity; "" = nobody is known.
  [[nodiscard]] std::string leader() const BERTH_EXCLUDES(mutex_);
  // How often this process has taken the lease: another process may have led between two terms.
  [[nodiscard]] std::uint64_t term() const BERTH_EXCLUDES(mutex_);

  [[nodiscard]] Instant WritableUntil() const override BERTH_EXCLUDES(mutex_);
  std::size_t WriteBegins(const NoteOfWrite& note) override BERTH_EXCLUDES(mutex_);
  void WriteEnds(std::size_t write, bool answered) override BERTH_EXCLUDES(mutex_);

 private:
  Status TakeOrRenew();
  Result<std::optional<wire::Lease>> Read();
  Status CreateUnheld();
  // The lease as it is to be written. Error: another process holds it.
  Result<wire::Lease> Claim(wire::Lease lease);
  Result<ApiResponse> Write(wire::Lease lease);
  void Observe(const std::string& version);
  void EndLeading() BERTH_EXCLUDES(mutex_);
  void Lead(Instant until, bool is_new_term) BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::string Collection() const;
  [[nodiscard]] int LeaseSeconds() const;

  ApiClient& client_;
  const Clock& clock_;
  const Options options_;
  std::string observed_version_;  // of the lease, when it was last seen to change...
  Instant observed_at_{};         // ... which was then
  std::string found_another_;     // in this Step: who holds the lease; "" = nobody
  mutable Mutex mutex_;
  std::string leader_ BERTH_GUARDED_BY(mutex_);  // found_another_ of the newest Step
  Instant writable_until_ BERTH_GUARDED_BY(mutex_) = Instant::min();
  std::uint64_t term_ BERTH_GUARDED_BY(mutex_) = 0;
  int writes_ BERTH_GUARDED_BY(mutex_) = 0;  // on their way
  // A write without an answer may be carried out until then.
  Instant in_doubt_until_ BERTH_GUARDED_BY(mutex_) = Instant::min();
};

// LeaderLabel: the label kLeaderLabel on this process' own pod, by which the Service `berth` finds
// the pod that leads. Every replica can then be ready.
//
// A container that starts anew finds the labels of the one before, so the label is taken off first.
// Both ways it is written again now and then: somebody may have changed it by hand, and of two
// requests, the first without an answer, the first may come last.

inline constexpr const char* kLeaderLabel = "berth.dev/leader";  // "true", or not there

// Step from one thread; the rest from any.
class LeaderLabel {
 public:
  struct Options {
    std::string namespace_name;
    std::string pod;
    Duration again_every = std::chrono::seconds(10);
    Duration retry_every = std::chrono::seconds(1);  // after a write that failed
  };

  // References: they outlive the object.
  LeaderLabel(ApiClient& client, const Clock& clock, Options options);

  // Writes what is wanted, unless that was done a short while ago. Blocks for one request at most;
  // call it some times a second. Error: of the newest write, until one succeeds.
  Status Step(bool wanted);

  // What the API server has taken; nothing before the first write, and while one is in doubt.
  [[nodiscard]] std::optional<bool> written() const;

 private:
  Status Write(bool wanted);

  ApiClient& client_;
  const Clock& clock_;
  const Options options_;
  Instant next_{};
  std::optional<bool> wanted_;  // at the last write
  Status newest_;
  enum class State { kUnknown, kAbsent, kThere };
  std::atomic<State> state_{State::kUnknown};
};

}  // namespace berth::kube
