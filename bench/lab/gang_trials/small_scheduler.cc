// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/gang_trials/small_scheduler.h"
#include "bench/replay/http_calls.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace berth::gang_trials {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kFirstBackoff = seconds(1);
constexpr Duration kLongestBackoff = seconds(10);

Instant Now() { return std::chrono::steady_clock::now(); }

// The text between the two; "" where it is not there.
std::string_view Between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t at = text.find(before);
  if (at == std::string_view::npos) return "";
  text.remove_prefix(at + before.size());
  return text.substr(0, text.find(after));
}

}  // namespace

SmallScheduler::SmallScheduler(const std::string& address, std::string names, Duration cycle,
                               Duration timeout)
    : names_(std::move(names)),
      cycle_(cycle),
      client_(http::HttpClient::Connect(address).value()),
      binds_(address, timeout),
      thread_([this] { Run(); }) {}

SmallScheduler::~SmallScheduler() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SmallScheduler::Arrived(const std::string& name, std::string json) {
  const std::lock_guard lock(mutex_);
  pods_[name].json = std::move(json);
  active_.push_back(name);
  changed_.notify_all();
}

void SmallScheduler::Woken(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto pod = pods_.find(name);
  if (pod == pods_.end()) return;
  ++counts_.wakes;
  pod->second.woken = true;
  if (pod->second.place != Place::kAsleep) return;
  pod->second.place = Place::kBackoff;
  backoff_.emplace(pod->second.not_before, name);
  changed_.notify_all();
}

void SmallScheduler::Assigned(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto pod = pods_.find(name);
  if (pod != pods_.end()) pod->second.place = Place::kGone;
}

SmallScheduler::Counts SmallScheduler::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void SmallScheduler::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    const std::string name = Next(lock);
    if (name.empty()) return;
    Pod& pod = pods_[name];
    pod.place = Place::kAsked;
    pod.woken = false;
    moves_when_asked_ = moves_;
    const std::string& json = pod.json;  // written once, before anybody asks
    lock.unlock();
    const Instant end = Now() + cycle_;
    Schedule(name, json);
    std::this_thread::sleep_until(end);
    lock.lock();
  }
}

std::string SmallScheduler::Next(std::unique_lock<std::mutex>& lock) {
  while (!ends_) {
    while (!backoff_.empty() && backoff_.begin()->first <= Now()) {
      const std::string name = backoff_.begin()->second;
      backoff_.erase(backoff_.begin());
      if (pods_[name].place == Place::kBackoff) active_.push_back(name);
    }
    while (!active_.empty()) {
      std::string name = std::move(active_.front());
      active_.pop_front();
      if (pods_[name].place != Place::kGone) return name;
    }
    const Instant until = backoff_.empty() ? Now() + seconds(1) : backoff_.begin()->first;
    changed_.wait_until(lock, until);
  }
  return "";
}

void SmallScheduler::Schedule(const std::string& name, const std::string& json) {
  const Instant began = Now();
  const std::string node =
      ChooseNode(R"({"Pod":)" + json + R"(,"Nodes":null,"NodeNames":[)" + names_ + "]}");
  const double ms = std::chrono::duration<double, std::milli>(Now() - began).count();
  {
    const std::lock_guard lock(mutex_);
    ++counts_.filters;
    counts_.longest_filter_ms = std::max(counts_.longest_filter_ms, ms);
    if (node.empty()) return Refused(name);
    Pod& pod = pods_[name];
    if (pod.place == Place::kGone) return;
    pod.place = Place::kBinding;
  }
  Bind(name, node);
}

// Where one node is left its score is not asked for, as in kube-scheduler.
std::string SmallScheduler::ChooseNode(const std::string& body) {
  const auto filtered = http::Post(client_, "/extender/filter", body);
  if (!filtered) return "";
  const std::string_view fits = Between(*filtered, R"("NodeNames":[)", "]");
  if (fits.find(',') == std::string_view::npos) return std::string(Between(fits, "\"", "\""));
  const auto scored = http::Post(client_, "/extender/prioritize", body);
  if (!scored) return "";
  const std::size_t best = std::string_view(*scored).find("\",\"Score\":10}");
  if (best == std::string::npos) return std::string(Between(fits, "\"", "\""));
  const std::size_t begin = scored->rfind('"', best - 1) + 1;
  return scored->substr(begin, best - begin);
}

void SmallScheduler::Failed(Pod& pod) {
  Duration wait = kFirstBackoff;
  for (int i = 0; i < pod.failures && wait < kLongestBackoff; ++i) wait *= 2;
  ++pod.failures;
  pod.not_before = Now() + std::min(wait, kLongestBackoff);
}

void SmallScheduler::Refused(const std::string& name) {
  Pod& pod = pods_[name];
  if (pod.place == Place::kGone) return;
  ++counts_.refusals;
  Failed(pod);
  if (pod.woken || moves_ != moves_when_asked_) {
    pod.place = Place::kBackoff;
    backoff_.emplace(pod.not_before, name);
  } else {
    pod.place = Place::kAsleep;
  }
}

void SmallScheduler::Bind(const std::string& name, const std::string& node) {
  const std::string body = R"({"PodName":")" + name + R"(","PodNamespace":"ns","PodUID":"uid-)" +
                           name + R"(","Node":")" + node + "\"}";
  binds_.Post("/extender/bind", body, [this, name](bool ok, const std::string& answer) {
    const bool is_bound = ok && answer.find(R"("Error":"")") != std::string::npos;
    BindEnded(name, is_bound, !answer.empty());
  });
}

void SmallScheduler::BindEnded(const std::string& name, bool is_bound, bool is_answered) {
  const std::lock_guard lock(mutex_);
  Pod& pod = pods_[name];
  if (is_bound) pod.place = Place::kGone;
  if (is_bound) return;
  ++(is_answered ? counts_.failed_binds : counts_.unanswered_binds);
  if (pod.place == Place::kGone) return;
  Failed(pod);
  pod.place = Place::kBackoff;
  backoff_.emplace(pod.not_before, name);
  WakeAll();
}

void SmallScheduler::WakeAll() {
  ++moves_;
  for (auto& [name, pod] : pods_) {
    if (pod.place != Place::kAsleep) continue;
    pod.place = Place::kBackoff;
    backoff_.emplace(pod.not_before, name);
  }
  changed_.notify_all();
}

}  // namespace berth::gang_trials
