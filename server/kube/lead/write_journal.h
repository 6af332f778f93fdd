// SPDX-License-Identifier: Apache-2.0
//
// WriteJournal: what a process has on its way to the API server, in a file that outlives it but not
// its place (its pod). The process that is started there next is known to be the only one, because
// the file is locked, and knows what the one before may still have carried out: so it need not wait
// until the lease of the killed one has run out.
//
//   BERTH_TRY(const auto journal, WriteJournal::Open(folder, clock, lease));
//   elector({.identity = host + "_" + journal->token(), .journal = journal.get()});
//   for (const std::string& write : journal->TakeLeft()) ...;  // once this process leads
//
// The token goes on only where every write is known that was on its way. Otherwise it is a new one,
// and the lease is another's, which has to run out.
//
// The file is memory that is mapped: what was noted is there when the process is killed the moment
// after. It does not survive that the machine ends, nor is it for another version of Berth.
//
//   | magic, writer, token, "some are not noted" | slot | slot | ...
//
// A slot: its size (0: free; kUntold: a write that nobody can tell), and the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/result.h"
#include "server/kube/client/api_client.h"

namespace berth::kube {

// 16 hexadecimal digits that no other process has.
std::string NewToken();

// Any thread may call it.
class WriteJournal {
 public:
  static constexpr std::size_t kSlots = 256;
  static constexpr std::size_t kMostNoteBytes = 4000;

  // folder: on a local file system, as a volume of the pod is. lease: for so long a write may be
  // carried out after its process ended. Error: kConflict, a process that runs has the file;
  // kUnavailable, it cannot be written. The clock outlives the journal.
  static Result<std::unique_ptr<WriteJournal>> Open(const std::string& folder, const Clock& clock,
                                                    Duration lease);
  ~WriteJournal();

  // As NewToken: of all processes, those alone have it that had this file one after the other.
  [[nodiscard]] const std::string& token() const { return token_; }
  // Until then what the process before had on its way may be carried out.
  [[nodiscard]] Instant left_until() const { return left_until_; }
  // What that was; nothing after left_until, and nothing the second time.
  [[nodiscard]] std::vector<std::string> TakeLeft() BERTH_EXCLUDES(mutex_);

  // A write begins. note: how the next process knows it; "", or more than kMostNoteBytes: it
  // cannot. Returns its slot.
  [[nodiscard]] std::size_t Begin(std::string_view note) BERTH_EXCLUDES(mutex_);
  // It will have ended by then; Instant::min(): it has.
  void End(std::size_t slot, Instant by) BERTH_EXCLUDES(mutex_);

 private:
  struct File;

  WriteJournal(int descriptor, File* file, const Clock& clock, Duration lease);
  // Whether the process before has left all that it had on its way.
  [[nodiscard]] bool GoesOn(std::string_view writer) const;
  void BeginAnew(std::string_view writer);
  // Frees what has ended by now.
  void Sweep(Instant now) BERTH_REQUIRES(mutex_);

  const int descriptor_;
  File* const file_;
  const Clock& clock_;
  const Instant left_until_;
  std::string token_;
  Mutex mutex_;
  std::vector<Instant> free_from_ BERTH_GUARDED_BY(mutex_);  // min: it is; max: in use
  int unnoted_ BERTH_GUARDED_BY(mutex_) = 0;                 // on their way, and no slot was free
  Instant unnoted_until_ BERTH_GUARDED_BY(mutex_) = Instant::min();
  std::vector<std::string> left_ BERTH_GUARDED_BY(mutex_);
};

// WriteFence: until when this process may write placements, and whether one of its writes is on its
// way. Two processes that both place pods from caches of their own would grant one GPU twice.

// The text by which the process that is started next in this place knows the write
// (write_journal.h). Called only where somebody notes it.
using NoteOfWrite = std::function<std::string()>;

// Any thread may call it.
class WriteFence {
 public:
  virtual ~WriteFence() = default;
  // A write has to be over by then. Instant::min() = not at all, Instant::max() = no limit.
  [[nodiscard]] virtual Instant WritableUntil() const = 0;
  // FencedWrite calls them, in pairs; the second with what the first returned. note: empty where
  // the next process cannot know the write.
  virtual std::size_t WriteBegins(const NoteOfWrite& /*note*/) { return 0; }
  // answered: its outcome is known. Otherwise it may be carried out even later.
  virtual void WriteEnds(std::size_t /*write*/, bool /*answered*/) {}
};

// One write, retries included. It begins before WritableUntil is asked, so that closing the
// fence either sees the write or keeps it from being sent.
class FencedWrite {
 public:
  explicit FencedWrite(WriteFence& fence, const NoteOfWrite& note = {})
      : fence_(fence), write_(fence.WriteBegins(note)) {}
  ~FencedWrite() { fence_.WriteEnds(write_, answered_); }
  FencedWrite(const FencedWrite&) = delete;
  FencedWrite& operator=(const FencedWrite&) = delete;

  // It was sent, and no answer came.
  void Unanswered() { answered_ = false; }

 private:
  WriteFence& fence_;
  const std::size_t write_;
  bool answered_ = true;
};

// Of a process that is alone.
class NoFence final : public WriteFence {
 public:
  [[nodiscard]] Instant WritableUntil() const override { return Instant::max(); }
};

// Which refusals of the API server are worth another attempt, how long to wait before it, and until
// when a write may be tried.

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
