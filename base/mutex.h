// SPDX-License-Identifier: Apache-2.0
//
// Mutex and MutexLock as clang capabilities: reading a BERTH_GUARDED_BY member without its lock
// does not compile under clang (-Wthread-safety). std::mutex itself carries no such annotation with
// libstdc++. SharedMutex with ReadLock and WriteLock are the same for many readers at once: where
// one reads, another one that comes reads too.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#if defined(__clang__)
#define BERTH_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define BERTH_THREAD_ANNOTATION(x)
#endif
#define BERTH_GUARDED_BY(x) BERTH_THREAD_ANNOTATION(guarded_by(x))
#define BERTH_REQUIRES(...) BERTH_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define BERTH_EXCLUDES(...) BERTH_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace berth {

class BERTH_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void Lock() BERTH_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void Unlock() BERTH_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class BERTH_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) BERTH_THREAD_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() BERTH_THREAD_ANNOTATION(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class BERTH_THREAD_ANNOTATION(capability("mutex")) SharedMutex {
 public:
  void Lock() BERTH_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void Unlock() BERTH_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  void LockShared() BERTH_THREAD_ANNOTATION(acquire_shared_capability()) { mutex_.lock_shared(); }
  void UnlockShared() BERTH_THREAD_ANNOTATION(release_shared_capability()) {
    mutex_.unlock_shared();
  }

 private:
  std::shared_mutex mutex_;
};

class BERTH_THREAD_ANNOTATION(scoped_lockable) WriteLock {
 public:
  explicit WriteLock(SharedMutex& mutex) BERTH_THREAD_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.Lock();
  }
  ~WriteLock() BERTH_THREAD_ANNOTATION(release_capability()) { mutex_.Unlock(); }
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class BERTH_THREAD_ANNOTATION(scoped_lockable) ReadLock {
 public:
  explicit ReadLock(SharedMutex& mutex) BERTH_THREAD_ANNOTATION(acquire_shared_capability(mutex))
      : mutex_(mutex) {
    mutex_.LockShared();
  }
  ~ReadLock() BERTH_THREAD_ANNOTATION(release_generic_capability()) { mutex_.UnlockShared(); }
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class CondVar {
 public:
  // Requires: the mutex is held; it is held again on return. Wakes may be spurious: loop on a
  // condition.
  void Wait(Mutex& mutex) BERTH_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // As Wait, until that time at the latest.
  void WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point limit) BERTH_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait_until(lock, limit);
    lock.release();
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace berth
