// SPDX-License-Identifier: Apache-2.0
#include "server/service/serve_parts.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <latch>
#include <thread>
#include <utility>

#include <malloc.h>

namespace berth {
namespace {

// Walking through the heap takes a while, so it has to be worth it.
constexpr std::size_t kMuch = std::size_t{32} << 20;

constexpr int kArenas = 4;

// A thread that finds too little address space for an arena, although there may be one more, gets
// none: each of its allocations is a mapping of its own from then on, and fails once the heaps of
// the others have taken the rest. So all are made while there is space.
void MakeArenas() {
  std::latch made(kArenas - 1);  // the first is the process's
  std::vector<std::jthread> threads;
  for (int i = 1; i < kArenas; ++i) {
    threads.emplace_back([&made] {
      void* volatile first = std::malloc(1);
      made.arrive_and_wait();
      std::free(first);
    });
  }
}

}  // namespace

void AddHeldMemory(std::span<const HeldStore> stores, MetricsText& text) {
  text.Gauge("berth_held_bytes", "Bytes held on behalf of clients, by store");
  for (const HeldStore& store : stores) text.Sample(store.bytes, {{"store", store.name}});
  text.Gauge("berth_held_bytes_limit", "Upper bound of berth_held_bytes, by store");
  for (const HeldStore& store : stores) text.Sample(store.limit, {{"store", store.name}});
}

void BoundAllocator() {
  constexpr int kMiB = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kMiB);  // else it grows up to 32 MiB with what is freed
  mallopt(M_TRIM_THRESHOLD, 16 * kMiB);
  mallopt(M_ARENA_MAX, kArenas);
  MakeArenas();
}

void ReturnFreedMemory() { malloc_trim(0); }

bool MemoryTrim::Look(std::size_t held_bytes) {
  peak_ = std::max(peak_, held_bytes);
  if (peak_ < kMuch || held_bytes > peak_ / 4) return false;
  ReturnFreedMemory();
  peak_ = held_bytes;
  return true;
}

void AdviceLog::Write(const std::vector<NodeAdvice>& advice, Instant now) {
  constexpr Duration kEvery = std::chrono::seconds(30);
  next_ = now + kEvery;
  std::map<std::string, std::string> config_by_node;
  for (const NodeAdvice& at : advice) {
    config_by_node.emplace(at.node, at.advice.config);
    const auto before = config_by_node_.find(at.node);
    if (before != config_by_node_.end() && before->second == at.advice.config) continue;
    log_.Write(LogLevel::kInfo, "repartition_advice", {{"text", TextOf(at)}});
  }
  config_by_node_ = std::move(config_by_node);
}

}  // namespace berth
