// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/import/imported.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <system_error>
#include <tuple>
#include <utility>

namespace berth::replay {
namespace {

// Two digits, or four, of a date.
std::optional<int> Digits(std::string_view text, std::size_t at, std::size_t count) {
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return std::nullopt;
    value = 10 * value + (text[i] - '0');
  }
  return value;
}

// The offset of a time zone, in seconds: "", "Z", "+08:00".
std::optional<std::int64_t> OffsetOf(std::string_view text) {
  if (text.empty() || text == "Z") return 0;
  const auto hours = Digits(text, 1, 2), minutes = Digits(text, 4, 2);
  if (text.size() != 6 || text[3] != ':' || !hours || !minutes) return std::nullopt;
  if (text[0] != '+' && text[0] != '-') return std::nullopt;
  const std::int64_t offset_s = 3600 * *hours + 60 * *minutes;
  return text[0] == '+' ? offset_s : -offset_s;
}

}  // namespace

void JobImporter::PassOver(const std::string& why) {
  ++imported_.jobs;
  ++imported_.passed_over[why];
}

void JobImporter::Add(const TraceJob& job) {
  constexpr std::int64_t kMostPods = 100'000;
  if (job.runs_s <= 0) return PassOver("it did not run");
  if (job.pods < 1 || job.pods > kMostPods) return PassOver("it has no pods, or too many");
  if (job.gpu_milli < 0 || (job.gpu_milli > kMilliPerGpu && job.gpu_milli % kMilliPerGpu != 0)) {
    return PassOver("more than one GPU and a part of one");
  }
  if (job.gpu_milli > std::int64_t{kMaxGpusPerNode} * kMilliPerGpu) {
    return PassOver("more GPUs than a node can have");
  }
  if (!names_.insert(job.name).second) return PassOver("its name was there before");
  ++imported_.jobs;
  first_s_ = std::min(first_s_.value_or(job.submitted_s), job.submitted_s);
  if (job.pods == 1) return AddTask(job, job.name);
  for (std::int64_t i = 0; i < job.pods; ++i) AddTask(job, job.name + "-" + std::to_string(i));
}

void JobImporter::AddTask(const TraceJob& job, std::string name) {
  TraceTask task{std::move(name), job.cpu_milli, job.memory_mib, 0, 0, job.gpu_spec};
  if (job.gpu_milli > 0) {
    task.gpus = static_cast<int>(std::max<std::int64_t>(job.gpu_milli / kMilliPerGpu, 1));
    task.gpu_milli = static_cast<int>(std::min<std::int64_t>(job.gpu_milli, kMilliPerGpu));
  }
  task.created_s = job.submitted_s;
  task.deleted_s = job.submitted_s + job.runs_s;
  task.priority = job.priority;
  imported_.tasks.push_back(std::move(task));
}

Imported JobImporter::Take() {
  for (TraceTask& task : imported_.tasks) {
    task.created_s -= first_s_.value_or(0);
    task.deleted_s -= first_s_.value_or(0);
  }
  std::ranges::sort(imported_.tasks, [](const TraceTask& a, const TraceTask& b) {
    return std::tie(a.created_s, a.name) < std::tie(b.created_s, b.name);
  });
  first_s_.reset();
  names_.clear();
  return std::exchange(imported_, {});
}

std::optional<std::int64_t> SecondsOf(std::string_view text) {
  constexpr std::size_t kDateAndTime = 19;
  const auto year = Digits(text, 0, 4), month = Digits(text, 5, 2), day = Digits(text, 8, 2);
  const auto hour = Digits(text, 11, 2), minute = Digits(text, 14, 2), second = Digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  std::string_view rest = text.substr(kDateAndTime);
  if (rest.starts_with('.')) rest.remove_prefix(std::min(rest.find_first_of("+-Z"), rest.size()));
  const auto offset = OffsetOf(rest);
  if (!offset) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return days * 86'400 + *hour * 3600 + *minute * 60 + *second - *offset;
}

std::optional<double> NumberOf(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  constexpr double kMost = 1e12;
  if (code != std::errc() || stop != end || !(std::abs(value) <= kMost)) return std::nullopt;
  return value;
}

Result<double> AmountAt(const CsvTable& table, std::size_t row, std::size_t column,
                        std::string_view name) {
  const std::string_view text = table.at(row, column);
  if (text.empty() || text == "nan" || text == "NaN") return 0.0;
  const auto number = NumberOf(text);
  if (number && *number >= 0) return *number;
  return Invalid(table.PlaceOf(row) + ": column " + std::string(name) +
                 ": want a number from 0, got \"" + std::string(text) + "\"");
}

}  // namespace berth::replay
