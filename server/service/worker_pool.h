// SPDX-License-Identifier: Apache-2.0
//
// WorkerPool: threads for work that blocks, so that the I/O threads never do. A job goes to the
// thread that was busy last: few of many threads work, with what they have in their caches.
//
// Any thread may call it.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace berth {

class WorkerPool {
 public:
  using Job = std::function<void()>;  // must not throw

  // Requires: threads > 0. Throws what std::thread throws.
  WorkerPool(int threads, std::size_t max_waiting);
  // Runs the jobs that wait, then ends.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // False when max_waiting jobs wait already: the job is dropped.
  [[nodiscard]] bool Submit(Job job) BERTH_EXCLUDES(mutex_);

 private:
  struct Worker {
    CondVar called;
    bool is_idle = false;
  };
  void Run(Worker& worker) BERTH_EXCLUDES(mutex_);

  const std::size_t max_waiting_;
  Mutex mutex_;
  std::deque<Worker> workers_ BERTH_GUARDED_BY(mutex_);  // each for one of threads_
  std::vector<Worker*> idle_ BERTH_GUARDED_BY(mutex_);   // the one that was busy last is the last
  std::deque<Job> waiting_ BERTH_GUARDED_BY(mutex_);
  bool ending_ BERTH_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

// The pool as a port: runs a job there, or returns false if the pool is full. An exception of a
// job, such as bad_alloc, ends that job alone. The pool outlives the port.
std::function<bool(WorkerPool::Job)> InBackground(WorkerPool& pool);

}  // namespace berth
