// SPDX-License-Identifier: Apache-2.0
//
// SmallScheduler: what kube-scheduler does with an extender that filters and binds, over HTTP. One
// pod at a time is asked about; its bind waits for an answer on a connection of its own while the
// next pod is asked about. What fits nowhere sleeps until its condition changes, or until a bind
// fails. What has failed is not asked about again before its back-off of 1, 2, 4 ... 10 s is over.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "bench/lab/gang_trials/bind_client.h"
#include "bench/http/http_client.h"

namespace berth::gang_trials {

class SmallScheduler {
 public:
  struct Counts {
    std::uint64_t filters = 0, refusals = 0;
    std::uint64_t failed_binds = 0;      // answered with an error
    std::uint64_t unanswered_binds = 0;  // by when kube-scheduler gives up
    std::uint64_t wakes = 0;
    double longest_filter_ms = 0;
  };

  // address: of Berth, HOST:PORT; names: of the nodes, as the elements of a JSON list; cycle: so
  // long it takes for a pod at least; timeout: of a bind (httpTimeout).
  SmallScheduler(const std::string& address, std::string names, Duration cycle, Duration timeout);
  ~SmallScheduler();
  SmallScheduler(const SmallScheduler&) = delete;
  SmallScheduler& operator=(const SmallScheduler&) = delete;

  // Any thread may call these.
  void Arrived(const std::string& name, std::string json);
  void Woken(const std::string& name);
  void Assigned(const std::string& name);
  [[nodiscard]] Counts counts() const;

 private:
  enum class Place { kActive, kAsked, kBinding, kBackoff, kAsleep, kGone };
  struct Pod {
    std::string json;
    Place place = Place::kActive;
    int failures = 0;
    Instant not_before{};
    bool woken = false;  // while it was asked about
  };

  void Run();
  // The next pod to ask about; "": it ends.
  std::string Next(std::unique_lock<std::mutex>& lock);
  void Schedule(const std::string& name, const std::string& json);
  // "": it fits nowhere.
  std::string ChooseNode(const std::string& body);
  void Failed(Pod& pod);
  void Refused(const std::string& name);
  void Bind(const std::string& name, const std::string& node);
  void BindEnded(const std::string& name, bool is_bound, bool is_answered);
  void WakeAll();

  const std::string names_;
  const Duration cycle_;
  http::HttpClient client_;  // the thread's alone
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Pod> pods_;
  std::deque<std::string> active_;
  std::multimap<Instant, std::string> backoff_;
  std::uint64_t moves_ = 0;  // how often all that sleep were woken
  std::uint64_t moves_when_asked_ = 0;
  Counts counts_;
  bool ends_ = false;
  BindClient binds_;
  std::thread thread_;
};

}  // namespace berth::gang_trials
