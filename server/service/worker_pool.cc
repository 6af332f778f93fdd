// SPDX-License-Identifier: Apache-2.0
#include "server/service/worker_pool.h"

#include <exception>
#include <utility>

namespace berth {

WorkerPool::WorkerPool(int threads, std::size_t max_waiting) : max_waiting_(max_waiting) {
  {
    const MutexLock lock(mutex_);
    idle_.reserve(static_cast<std::size_t>(threads));
  }
  for (int i = 0; i < threads; ++i) {
    const MutexLock lock(mutex_);
    Worker& worker = workers_.emplace_back();
    threads_.emplace_back([this, &worker] { Run(worker); });
  }
}

WorkerPool::~WorkerPool() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    for (Worker& worker : workers_) worker.called.NotifyOne();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool WorkerPool::Submit(Job job) {
  Worker* worker = nullptr;
  {
    const MutexLock lock(mutex_);
    if (waiting_.size() >= max_waiting_) return false;
    waiting_.push_back(std::move(job));
    if (idle_.empty()) return true;
    worker = idle_.back();
    idle_.pop_back();
    worker->is_idle = false;
  }
  worker->called.NotifyOne();
  return true;
}

void WorkerPool::Run(Worker& worker) {
  while (true) {
    Job job;
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && !ending_) {
        if (!worker.is_idle) idle_.push_back(&worker);
        worker.is_idle = true;
        worker.called.Wait(mutex_);
      }
      // Woken for nothing, by chance, and there is a job all the same.
      if (std::exchange(worker.is_idle, false)) std::erase(idle_, &worker);
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
