// SPDX-License-Identifier: Apache-2.0
//
// What the interposer needs of the rest of the agent.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace berth::node {

// Devices to close, by resource, without the number of a replica.
using ClosedDevices = std::map<std::string, std::set<std::string, std::less<>>>;

// The kubelet asks which devices a container should get.
struct PreferredQuestion {
  std::string resource;
  std::vector<std::string> available;  // includes must
  std::vector<std::string> must;
  std::size_t size = 0;
  Instant since{};  // when the kubelet began to ask us
};

// The plugin's own preference among these devices; nullopt where it has none or gives no answer.
using AskPlugin = std::function<std::optional<std::vector<std::string>>(
    const std::vector<std::string>& available)>;

// Any thread may call them. None throws.
class DeviceChooser {
 public:
  virtual ~DeviceChooser() = default;
  // The answer: exactly `size` different devices out of `available`, with all of `must`; fewer only
  // where there are fewer. Ends within kMostChoice.
  virtual std::vector<std::string> Choose(const PreferredQuestion& question,
                                          const AskPlugin& ask_plugin) = 0;
  // The kubelet's books may say more now: a container was given these devices.
  virtual void Given(const std::string& resource, const std::vector<std::string>& devices) = 0;
};

inline constexpr Duration kMostChoice = std::chrono::milliseconds(2500);
inline constexpr Duration kMostPluginPreference = std::chrono::seconds(1);

// Who hears of what the interposer sees. The calls return at once.
class InterposerReports {
 public:
  virtual ~InterposerReports() = default;
  virtual void Carries(std::set<std::string> resources) = 0;
  virtual void Unhealthy(const std::string& resource, std::set<std::string> devices) = 0;
  // Whether the plugin's devices say on which NUMA nodes they are, as the kubelet sees them.
  virtual void NumaNodes(const std::string& resource, bool known) = 0;
  virtual void PluginRegistered() = 0;
};

// CallWatch: the calls that are under way, each with the time by which it must have ended. While
// one is late the worker gives no heartbeat, and the guard ends it.
// Any thread may call it.
class CallWatch {
 public:
  // Counts from its making to its end.
  class Call {
   public:
    Call(CallWatch& watch, Duration limit) : watch_(watch), end_(watch.Begin(limit)) {}
    ~Call() { watch_.End(end_); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    CallWatch& watch_;
    const std::multiset<Instant>::const_iterator end_;
  };

  // Whether none is late by more than `slack`.
  [[nodiscard]] bool InTime(Duration slack) const BERTH_EXCLUDES(mutex_) {
    const Instant now = Instant::clock::now();
    const MutexLock lock(mutex_);
    return ends_.empty() || *ends_.begin() + slack >= now;
  }
  [[nodiscard]] bool Idle() const BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return ends_.empty();
  }

 private:
  std::multiset<Instant>::const_iterator Begin(Duration limit) BERTH_EXCLUDES(mutex_) {
    const Instant end = Instant::clock::now() + limit;
    const MutexLock lock(mutex_);
    return ends_.insert(end);
  }
  void End(std::multiset<Instant>::const_iterator call) BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ends_.erase(call);
  }

  mutable Mutex mutex_;
  std::multiset<Instant> ends_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::node
