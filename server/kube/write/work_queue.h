// SPDX-License-Identifier: Apache-2.0
//
// WorkQueue: a bounded queue, and a thread that works it off one item at a time.
//
// The thread calls `work` from the moment of construction: a class declares its queue last.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/keep_going.h"
#include "base/mutex.h"

namespace berth::kube {

// Any thread may call it.
template <class Item>
class WorkQueue {
 public:
  WorkQueue(std::size_t most, std::function<void(Item)> work)
      : most_(most), work_(std::move(work)), thread_([this] { Run(); }) {}
  // Waits for the item that is worked on; those that wait are dropped.
  ~WorkQueue() {
    {
      const MutexLock lock(mutex_);
      ending_ = true;
    }
    changed_.NotifyAll();
    thread_.join();
  }

  // False: the queue is full.
  bool PushBack(Item item) BERTH_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (waiting_.size() >= most_) return false;
      waiting_.push_back(std::move(item));
    }
    changed_.NotifyOne();
    return true;
  }
  // Comes first. False: the queue was full, and its last item was dropped.
  bool PushFront(Item item) BERTH_EXCLUDES(mutex_) {
    bool had_room = true;
    {
      const MutexLock lock(mutex_);
      had_room = waiting_.size() < most_;
      if (!had_room) waiting_.pop_back();
      waiting_.push_front(std::move(item));
    }
    changed_.NotifyOne();
    return had_room;
  }

  // For `work`: waits in real time. False: the queue is being destroyed.
  bool Pause(Duration time) BERTH_EXCLUDES(mutex_) {
    const Instant end = std::chrono::steady_clock::now() + time;
    const MutexLock lock(mutex_);
    while (!ending_ && std::chrono::steady_clock::now() < end) changed_.WaitUntil(mutex_, end);
    return !ending_;
  }

 private:
  void Run() {
    // Out of memory: it costs the item.
    KeepGoing([this] {
      Item item;
      while (Next(item)) work_(std::move(item));
    });
  }
  bool Next(Item& item) BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (waiting_.empty() && !ending_) changed_.Wait(mutex_);
    if (ending_) return false;
    item = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
  }

  const std::size_t most_;
  const std::function<void(Item)> work_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Item> waiting_ BERTH_GUARDED_BY(mutex_);
  bool ending_ BERTH_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace berth::kube
