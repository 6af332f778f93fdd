// SPDX-License-Identifier: Apache-2.0
//
// The memory that clients can make Berth hold, by store, each with its bound (SECURITY.md).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "server/telemetry/metrics.h"

namespace berth {

struct HeldStore {
  std::string_view name;  // of a label
  std::size_t bytes = 0;
  std::size_t limit = 0;
};

void AddHeldMemory(std::span<const HeldStore> stores, MetricsText& text);

// Makes the allocator return large blocks to the system when they are freed, and keep fewer heaps
// than threads, all of them made now. Call it before other threads exist. Throws what std::thread
// throws.
void BoundAllocator();

// Returns to the system what is free, once: after something that takes much memory for a moment.
void ReturnFreedMemory();

// Returns freed memory to the system after much was held; the allocator alone would keep it. One
// thread.
class MemoryTrim {
 public:
  // held_bytes: what is held now. True if memory went back to the system.
  bool Look(std::size_t held_bytes);

 private:
  std::size_t peak_ = 0;  // since it last did
};

}  // namespace berth
