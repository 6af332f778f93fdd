// SPDX-License-Identifier: Apache-2.0
#include "server/service/worker_pool.h"

#include <exception>
#include <utility>

namespace berth {

WorkerPool::WorkerPool(int threads, std::size_t max_waiting) : max_waiting_(max_waiting) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

WorkerPool::~WorkerPool() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkerPool::Submit(Job job) {
  {
    const MutexLock lock(mutex_);
    if (waiting_.size() >= max_waiting_) return false;
    waiting_.push_back(std::move(job));
  }
  changed_.NotifyOne();
  return true;
}

void WorkerPool::Run() {
  while (true) {
    Job job;
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && !ending_) changed_.Wait(mutex_);
      if (waiting_.empty()) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    try {
      job();
    } catch (const std::exception&) {  // out of memory: it costs the job
    }
  }
}

std::function<bool(WorkerPool::Job)> InBackground(WorkerPool& pool) {
  return [&pool](WorkerPool::Job job) {
    return pool.Submit([job = std::move(job)] {
      try {
        job();
      } catch (...) {  // the caller tries again when it needs the result
      }
    });
  };
}

}  // namespace berth
