// SPDX-License-Identifier: Apache-2.0
//
// MeasuringSink<Sink>: an ObjectSink around any other that records what this process has used at
// the end of a list and during its events. CountingSink is the cheapest inner sink.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "base/padded_text.h"
#include "server/kube/watch/reflector.h"

namespace berth::kube_bench {

// Time and memory that the process has used so far.
struct Usage {
  double wall_s = 0, cpu_s = 0, rss_mib = 0, peak_mib = 0;

  static Usage Now() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    long pages = 0, resident = 0;
    if (std::FILE* file = std::fopen("/proc/self/statm", "r"); file != nullptr) {
      if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
      std::fclose(file);
    }
    const auto wall = std::chrono::steady_clock::now().time_since_epoch();
    const double mib = 1 << 20;
    return {std::chrono::duration<double>(wall).count(),
            seconds(used.ru_utime) + seconds(used.ru_stime),
            static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / mib,
            static_cast<double>(used.ru_maxrss) / 1024};
  }
};

class CountingSink final : public kube::ObjectSink {
 public:
  void ListBegins() override {}
  void Listed(const PaddedText& object) override { bytes_ += object.size(); }
  void ListEnds() override {}
  void Changed(const PaddedText& object) override { bytes_ += object.size(); }
  void Deleted(const PaddedText& object) override { bytes_ += object.size(); }

 private:
  std::size_t bytes_ = 0;
};

template <class Sink>
class MeasuringSink final : public kube::ObjectSink {
 public:
  explicit MeasuringSink(Sink& sink, std::size_t events) : sink_(sink), events_(events) {}

  void ListBegins() override { sink_.ListBegins(); }
  void Listed(const PaddedText& object) override {
    ++listed_;
    bytes_ += object.size();
    sink_.Listed(object);
  }
  void ListEnds() override {
    sink_.ListEnds();
    at_list_end_ = Usage::Now();
    list_done_ = true;
  }
  void Changed(const PaddedText& object) override {
    sink_.Changed(object);
    ++changed_;
    if (events_ >= kMarks && changed_ % (events_ / kMarks) == 0) marks_.push_back(Usage::Now());
    if (changed_ == events_) events_done_ = true;
  }
  void Deleted(const PaddedText& object) override { sink_.Deleted(object); }

  // Any thread.
  [[nodiscard]] bool list_done() const { return list_done_; }
  [[nodiscard]] bool events_done() const { return events_done_; }

  // Once they are done.
  [[nodiscard]] std::size_t listed() const { return listed_; }
  [[nodiscard]] double listed_mib() const { return static_cast<double>(bytes_) / (1 << 20); }
  [[nodiscard]] const Usage& at_list_end() const { return at_list_end_; }
  [[nodiscard]] const std::vector<Usage>& marks() const { return marks_; }  // ten

 private:
  static constexpr std::size_t kMarks = 10;

  Sink& sink_;
  const std::size_t events_;
  std::size_t listed_ = 0, bytes_ = 0, changed_ = 0;
  Usage at_list_end_;
  std::vector<Usage> marks_;
  std::atomic<bool> list_done_ = false, events_done_ = false;
};

}  // namespace berth::kube_bench
