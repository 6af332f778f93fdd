// SPDX-License-Identifier: Apache-2.0
//
// StateMemo: remembers a number per node state, in bounded memory and without locks.
//
// A cluster of a thousand nodes passes through few distinct states: nodes of one kind that are
// equally full are the same to a metric. Keys are 64-bit hashes of a state; two states with the
// same hash would share a number (for a million states the chance is below 10^-7). A slot holds the
// last state that mapped to it.
//
// Any thread may call it: a slot that is written and read at once reads as empty.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>

namespace berth {

class StateMemo {
 public:
  // 16 bytes each. Requires: slots is a power of two.
  explicit StateMemo(std::size_t slots)
      : mask_(slots - 1), slots_(std::make_unique<Slot[]>(slots)) {}

  [[nodiscard]] std::optional<double> Find(std::uint64_t key) const {
    const Slot& slot = slots_[key & mask_];
    const std::uint64_t bits = slot.bits.load(std::memory_order_relaxed);
    if ((slot.check.load(std::memory_order_relaxed) ^ bits) != key) return std::nullopt;
    return std::bit_cast<double>(bits);
  }

  void Store(std::uint64_t key, double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    Slot& slot = slots_[key & mask_];
    slot.bits.store(bits, std::memory_order_relaxed);
    slot.check.store(key ^ bits, std::memory_order_relaxed);
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> check{0};  // key ^ bits: halves of two states do not pass for one
    std::atomic<std::uint64_t> bits{0};
  };

  const std::uint64_t mask_;
  const std::unique_ptr<Slot[]> slots_;
};

}  // namespace berth
