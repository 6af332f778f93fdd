// SPDX-License-Identifier: Apache-2.0
//
// WriteFence: until when this process may write placements, and whether one of its writes is on its
// way. Two processes that both place pods from caches of their own would grant one GPU twice.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/clock.h"

namespace berth::kube {

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

}  // namespace berth::kube
