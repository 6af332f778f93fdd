// SPDX-License-Identifier: Apache-2.0
//
// What clients can make Berth hold in memory, store by store, each with its bound (SECURITY.md).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace berth {

struct HeldStore {
  std::string_view name;  // of a label
  std::size_t bytes = 0;
  std::size_t limit = 0;
};

// Gauges in Prometheus' text format.
std::string HeldMemoryText(std::span<const HeldStore> stores);

// Makes the allocator give large blocks back when they are freed, and keep fewer heaps than there
// are threads. Call it before there are others.
void BoundAllocator();

// Gives memory that was freed back to the system after much of it was held: the allocator would
// keep it. One thread.
class MemoryTrim {
 public:
  // What is held now. Returns whether it gave memory back.
  bool Look(std::size_t held_bytes);

 private:
  std::size_t peak_ = 0;  // since it last did
};

}  // namespace berth
