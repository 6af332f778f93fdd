// SPDX-License-Identifier: Apache-2.0
#include "server/kube/client/body_queue.h"

namespace berth::kube {

std::size_t BodyQueue::worth_waking() const {
  if (wake_ == Wake::kAtTheEnd) return limit_;
  return wake_ == Wake::kSeldom && taken_ ? limit_ / 2 : 1;
}

void BodyQueue::Head(int status, std::optional<Duration> retry_after) {
  const MutexLock lock(mutex_);
  status_ = status;
  retry_after_ = retry_after;
  if (!waiting_.empty()) changed_.NotifyAll();
}

bool BodyQueue::Put(std::string_view bytes, std::function<void()> resume) {
  const MutexLock lock(mutex_);
  if (closed_) return true;
  waiting_.append(bytes);
  if (waiting_.size() >= worth_waking()) changed_.NotifyAll();
  if (waiting_.size() < limit_) return true;
  resume_ = std::move(resume);
  return false;
}

void BodyQueue::End(std::string problem) {
  const MutexLock lock(mutex_);
  ended_ = true;
  problem_ = std::move(problem);
  changed_.NotifyAll();
}

void BodyQueue::Stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  changed_.NotifyAll();
}

BodyQueue::Event BodyQueue::Wait(std::string& bytes, Instant limit) {
  bytes.clear();
  std::function<void()> resume;
  {
    const MutexLock lock(mutex_);
    while (true) {
      if (stopped_) return Event::kStopped;
      const bool late = std::chrono::steady_clock::now() >= limit;
      const bool enough = late || ended_ || waiting_.size() >= worth_waking();
      if (status_ != 0 && !waiting_.empty() && enough) break;
      if (ended_) return Event::kEnd;
      if (late) return Event::kTimeout;
      changed_.WaitUntil(mutex_, limit);
    }
    taken_ = true;
    std::swap(bytes, waiting_);
    resume = std::exchange(resume_, nullptr);
  }
  if (resume) resume();
  return Event::kBytes;
}

void BodyQueue::Close() {
  std::function<void()> resume;
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    resume = std::exchange(resume_, nullptr);
  }
  if (resume) resume();
}

int BodyQueue::status() {
  const MutexLock lock(mutex_);
  return status_;
}

std::optional<Duration> BodyQueue::retry_after() {
  const MutexLock lock(mutex_);
  return retry_after_;
}

std::string BodyQueue::problem() {
  const MutexLock lock(mutex_);
  return problem_;
}

}  // namespace berth::kube
