// SPDX-License-Identifier: Apache-2.0
#include "server/kube/lead/write_journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>
#include <span>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/version.h"

namespace berth::kube {
namespace {

// With the version of what follows.
constexpr std::string_view kMagic = "berth writes 1\n";
constexpr std::size_t kTokenBytes = 16;
constexpr std::uint32_t kUntold = 0xffff'ffff;

Error Failed(const std::string& path) {
  return {Errc::kUnavailable, path + ": " + std::generic_category().message(errno)};
}

// Who can go on with the file: the same version of Berth, which reads the notes as they were meant,
// while the machine runs. "" where that is not known.
std::string Writer() {
  auto boot = ReadFile("/proc/sys/kernel/random/boot_id");
  return boot ? *std::move(boot) + std::string(BerthVersion()) : "";
}

std::string_view TextOf(std::span<const char> field) {
  return {field.data(), strnlen(field.data(), field.size())};
}

void Put(std::span<char> field, std::string_view text) {
  std::ranges::fill(field, '\0');
  text.copy(field.data(), field.size());
}

// Whenever the process is killed, the file has all that was written before, and nothing after.
void Store(std::uint32_t& to, std::uint32_t value) {
  std::atomic_ref(to).store(value, std::memory_order_seq_cst);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace

std::string NewToken() {
  std::random_device random;
  std::string token;
  while (token.size() < kTokenBytes) token += "0123456789abcdef"[random() % 16];
  return token;
}

struct WriteJournal::File {
  struct Slot {
    std::uint32_t size;
    std::array<char, 4092> text;
  };
  std::array<char, 32> magic;
  std::array<char, 128> writer;
  std::array<char, 32> token;
  std::uint32_t some_unnoted;
  std::array<char, 3900> rest;
  std::array<Slot, kSlots> slots;
};

Result<std::unique_ptr<WriteJournal>> WriteJournal::Open(const std::string& folder,
                                                         const Clock& clock, Duration lease) {
  static_assert(sizeof(File) == 4096 * (kSlots + 1));
  static_assert(kMostNoteBytes <= sizeof(File::Slot::text));
  const std::string path = folder + "/writes";
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return tl::unexpected(Failed(path));
  const auto fail = [&](Error error) {
    close(descriptor);
    return tl::unexpected(std::move(error));
  };
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail(Failed(path));
    return fail({Errc::kConflict, path + ": another process has it"});
  }
  // All of it at once: a mapped page for which there is no room ends the process.
  if (const int error = posix_fallocate(descriptor, 0, sizeof(File)); error != 0) {
    errno = error;
    return fail(Failed(path));
  }
  void* const memory =
      mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return fail(Failed(path));
  return std::unique_ptr<WriteJournal>(
      new WriteJournal(descriptor, static_cast<File*>(memory), clock, lease));
}

WriteJournal::WriteJournal(int descriptor, File* file, const Clock& clock, Duration lease)
    : descriptor_(descriptor),
      file_(file),
      clock_(clock),
      left_until_(clock.Now() + lease),
      free_from_(kSlots, Instant::min()) {
  const std::string writer = Writer().substr(0, sizeof File::writer - 1);
  if (!GoesOn(writer)) BeginAnew(writer);
  token_ = TextOf(file_->token);
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < kSlots; ++i) {
    const File::Slot& slot = file_->slots[i];
    if (slot.size == 0) continue;
    left_.emplace_back(slot.text.data(), slot.size);
    free_from_[i] = left_until_;
  }
}

bool WriteJournal::GoesOn(std::string_view writer) const {
  if (TextOf(file_->magic) != kMagic || writer.empty()) return false;
  if (TextOf(file_->writer) != writer) return false;
  if (TextOf(file_->token).size() != kTokenBytes || file_->some_unnoted != 0) return false;
  return std::ranges::all_of(file_->slots,
                             [](const auto& slot) { return slot.size <= kMostNoteBytes; });
}

// The magic comes last: without it the file is nobody's.
void WriteJournal::BeginAnew(std::string_view writer) {
  token_ = NewToken();
  Put(file_->magic, "");
  std::atomic_signal_fence(std::memory_order_seq_cst);
  for (File::Slot& slot : file_->slots) Store(slot.size, 0);
  Store(file_->some_unnoted, 0);
  Put(file_->writer, writer);
  Put(file_->token, token_);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  Put(file_->magic, kMagic);
}

WriteJournal::~WriteJournal() {
  munmap(file_, sizeof(File));
  close(descriptor_);  // and the lock is gone
}

std::vector<std::string> WriteJournal::TakeLeft() {
  const MutexLock lock(mutex_);
  std::vector<std::string> left = std::exchange(left_, {});
  if (clock_.Now() >= left_until_) left.clear();
  return left;
}

void WriteJournal::Sweep(Instant now) {
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (free_from_[i] == Instant::min() || free_from_[i] > now) continue;
    Store(file_->slots[i].size, 0);
    free_from_[i] = Instant::min();
  }
  if (unnoted_ == 0 && now >= unnoted_until_) Store(file_->some_unnoted, 0);
}

std::size_t WriteJournal::Begin(std::string_view note) {
  const Instant now = clock_.Now();
  const MutexLock lock(mutex_);
  Sweep(now);
  const auto free = std::ranges::find(free_from_, Instant::min());
  if (free == free_from_.end()) {
    ++unnoted_;
    Store(file_->some_unnoted, 1);
    return kSlots;
  }
  *free = Instant::max();
  const auto slot = static_cast<std::size_t>(free - free_from_.begin());
  File::Slot& to = file_->slots[slot];
  const bool is_told = !note.empty() && note.size() <= kMostNoteBytes;
  if (is_told) note.copy(to.text.data(), note.size());
  Store(to.size, is_told ? static_cast<std::uint32_t>(note.size()) : kUntold);
  return slot;
}

void WriteJournal::End(std::size_t slot, Instant by) {
  const Instant now = clock_.Now();
  const MutexLock lock(mutex_);
  if (slot < kSlots) {
    // An instant that has passed, but not min: Sweep frees what stands there.
    free_from_[slot] = std::max(by, now - std::chrono::nanoseconds(1));
  } else {
    --unnoted_;
    unnoted_until_ = std::max(unnoted_until_, by);
  }
  Sweep(now);
}

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
