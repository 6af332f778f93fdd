// SPDX-License-Identifier: Apache-2.0
//
// WriteFence: until when this process may write placements, and whether one of its writes is on its
// way. Two processes that both place pods from caches of their own would grant one GPU twice.
#pragma once

#include "base/clock.h"

namespace berth::kube {

// Any thread may call it.
class WriteFence {
 public:
  virtual ~WriteFence() = default;
  // A write has to be over by then. Instant::min() = not at all, Instant::max() = no limit.
  [[nodiscard]] virtual Instant WritableUntil() const = 0;
  // FencedWrite calls them, in pairs.
  virtual void WriteBegins() {}
  // answered: its outcome is known. Otherwise it may be carried out even later.
  virtual void WriteEnds(bool /*answered*/) {}
};

// One write, retries included. It begins before WritableUntil is asked, so that closing the
// fence either sees the write or keeps it from being sent.
class FencedWrite {
 public:
  explicit FencedWrite(WriteFence& fence) : fence_(fence) { fence_.WriteBegins(); }
  ~FencedWrite() { fence_.WriteEnds(answered_); }
  FencedWrite(const FencedWrite&) = delete;
  FencedWrite& operator=(const FencedWrite&) = delete;

  // It was sent, and no answer came.
  void Unanswered() { answered_ = false; }

 private:
  WriteFence& fence_;
  bool answered_ = true;
};

// Of a process that is alone.
class NoFence final : public WriteFence {
 public:
  [[nodiscard]] Instant WritableUntil() const override { return Instant::max(); }
};

}  // namespace berth::kube
