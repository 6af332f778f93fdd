// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/service_report.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/replay/report.h"

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

Json ClassJson(const ClassService& figures) {
  Json longer = Json::array();
  for (const double part : figures.longer) longer.push_back(std::round(part * 1e5) / 1e5);
  return {{"arrived", figures.arrived},
          {"never_started", figures.never},
          {"wait_mean_s", Thousandths(figures.wait_mean_s)},
          {"wait_p50_s", figures.wait_p50_s},
          {"wait_p99_s", figures.wait_p99_s},
          {"wait_longest_s", figures.wait_longest_s},
          {"bounded_slowdown_mean", Thousandths(figures.slowdown_mean)},
          {"longest_wait_per_run", Thousandths(figures.starvation)},
          {"wait_p50_cut_off", figures.p50_cut_off},
          {"wait_p99_cut_off", figures.p99_cut_off},
          {"gpu_hours_served", Thousandths(figures.served_gpu_hours)},
          {"gpu_hours_demand", Thousandths(figures.demand_gpu_hours)},
          {"waited_longer", std::move(longer)}};
}

Json SamplesJson(const std::vector<Sample>& samples) {
  Json at = Json::array(), allocated = Json::array(), waiting = Json::array();
  Json watts = Json::array();
  Json idle = Json::object();
  for (const std::string_view cause : kIdleCauseNames) idle[std::string(cause)] = Json::array();
  for (const Sample& sample : samples) {
    at.push_back(Thousandths(sample.at_hours));
    allocated.push_back(Thousandths(sample.allocated_gpus));
    waiting.push_back(Thousandths(sample.waiting_gpus));
    watts.push_back(sample.watts);
    for (std::size_t cause = 0; cause < kIdleCauses; ++cause) {
      idle[std::string(kIdleCauseNames[cause])].push_back(Thousandths(sample.idle[cause]));
    }
  }
  return {{"at_hours", std::move(at)},
          {"allocated_gpus", std::move(allocated)},
          {"waiting_gpus", std::move(waiting)},
          {"estimated_watts", std::move(watts)},
          {"idle_gpus", std::move(idle)}};
}

__attribute__((format(printf, 2, 3))) void Append(std::string& text, const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

int WidthOf(const std::vector<PolicyResult>& results) {
  std::size_t width = 24;
  for (const PolicyResult& of : results) width = std::max(width, of.policy.size());
  return static_cast<int>(width);
}

// One line for each policy, with a figure for each size.
template <class Figure>
void AppendBySize(std::string& text, const char* title, const std::vector<PolicyResult>& results,
                  Figure figure) {
  const int width = WidthOf(results);
  Append(text, "\n%-*s", width, title);
  for (const std::string_view name : kSizeClassNames) {
    Append(text, " %19.*s", static_cast<int>(name.size()), name.data());
  }
  text += '\n';
  for (const auto& [policy, result] : results) {
    Append(text, "%-*s", width, policy.c_str());
    for (const ClassService& of : result.service) {
      Append(text, " %19s", of.arrived == 0 ? "-" : figure(of).c_str());
    }
    text += '\n';
  }
}

// How much longer pods took than if nobody had waited, and the worst of them.
std::string SlowdownText(const ClassService& of) {
  std::string text;
  Append(text, "%.2f / %.1f", of.slowdown_mean, of.starvation);
  return text;
}

}  // namespace

Json SimulationJson(const SimulationResult& result) {
  Json classes = Json::object();
  for (std::size_t c = 0; c < kSizeClasses; ++c) {
    classes[std::string(kSizeClassNames[c])] = ClassJson(result.service[c]);
  }
  const ClassService& all = Of(result, SizeClass::kAll);
  return {{"horizon_hours", Thousandths(result.horizon_hours)},
          {"gpus_total", result.gpus_total},
          {"arrivals", result.arrivals},
          {"attempts", result.attempts},
          {"gpu_hours_served", Thousandths(all.served_gpu_hours)},
          {"gpu_hours_demand", Thousandths(all.demand_gpu_hours)},
          {"estimated_kwh", Thousandths(result.kwh)},
          {"gpus_without_watts", result.gpus_without_watts},
          {"idle_gpu_hours_waiting", Thousandths(result.idle_gpu_hours_waiting)},
          {"waiting_hours", Thousandths(result.waiting_hours)},
          {"waited_longer_than_s", kWaitSeconds},
          {"classes", std::move(classes)},
          {"samples", SamplesJson(result.samples)}};
}

std::string ShortDuration(double seconds) {
  char text[32];
  if (seconds < 60) {
    std::snprintf(text, sizeof text, seconds == std::floor(seconds) ? "%.0f s" : "%.1f s", seconds);
  } else if (seconds < 3600) {
    std::snprintf(text, sizeof text, "%.1f min", seconds / 60);
  } else {
    std::snprintf(text, sizeof text, "%.2f h", seconds / 3600);
  }
  return seconds == 0 ? "0" : text;
}

std::string WaitText(double seconds, bool cut_off) {
  return (cut_off ? "> " : "") + ShortDuration(seconds);
}

std::string WaitsText(const ClassService& figures) {
  return WaitText(figures.wait_p50_s, figures.p50_cut_off) + " / " +
         WaitText(figures.wait_p99_s, figures.p99_cut_off);
}

const char* const kCutOffNote =
    "a pod that never started counts as waiting until the end; > marks quantiles that this cuts "
    "off\n";

double ServedPct(const SimulationResult& result) {
  const ClassService& all = Of(result, SizeClass::kAll);
  return 100 * all.served_gpu_hours / all.demand_gpu_hours;
}

std::string Against(const PolicyResult& base, const std::vector<PolicyResult>& results) {
  const int width = WidthOf(results);
  const double longest = Of(base.result, SizeClass::kEight).wait_longest_s;
  std::string text;
  Append(text, "\n%-*s %22s %22s\n", width, "", "GPU-hours served,", "longest wait of");
  Append(text, "%-*s %22s %22s\n", width, ("against " + base.policy).c_str(),
         "points of the demand", "8 GPUs, ratio");
  for (const auto& [policy, result] : results) {
    Append(text, "%-*s %+22.2f", width, policy.c_str(), ServedPct(result) - ServedPct(base.result));
    if (longest > 0) {
      Append(text, " %22.2f\n", Of(result, SizeClass::kEight).wait_longest_s / longest);
    } else {
      Append(text, " %22s\n", "-");
    }
  }
  return text;
}

std::string SideBySide(const std::string& title, const std::vector<PolicyResult>& results) {
  const SimulationResult& first = results.front().result;
  const int width = WidthOf(results);
  std::string text = title;
  Append(text,
         "\n%.1f h, %lld pods, %lld GPUs; demand %.1f GPU-hours (%.1f %% of the capacity)\n\n",
         first.horizon_hours, static_cast<long long>(first.arrivals),
         static_cast<long long>(first.gpus_total), Of(first, SizeClass::kAll).demand_gpu_hours,
         100 * Of(first, SizeClass::kAll).demand_gpu_hours /
             (first.horizon_hours * static_cast<double>(first.gpus_total)));
  Append(text, "%-*s %12s %9s %10s %15s %10s %10s\n", width, "", "GPU-hours", "of the", "estimated",
         "idle GPU-hours", "pods never", "attempts");
  Append(text, "%-*s %12s %9s %10s %15s %10s %10s\n", width, "policy", "served", "demand", "kWh",
         "while one waits", "started", "per pod");
  for (const auto& [policy, result] : results) {
    const ClassService& all = Of(result, SizeClass::kAll);
    Append(text, "%-*s %12.1f %8.2f%% %10.1f %15.1f %10lld %10.1f\n", width, policy.c_str(),
           all.served_gpu_hours, ServedPct(result), result.kwh, result.idle_gpu_hours_waiting,
           static_cast<long long>(all.never),
           static_cast<double>(result.attempts) / static_cast<double>(result.arrivals));
  }
  AppendBySize(text, "wait p50 / p99", results, WaitsText);
  AppendBySize(text, "longest wait", results,
               [](const ClassService& of) { return ShortDuration(of.wait_longest_s); });
  AppendBySize(text, "slowdown / wait per run", results, SlowdownText);
  const auto cut_off = [](const PolicyResult& of) {
    return Of(of.result, SizeClass::kAll).never > 0;
  };
  if (std::ranges::any_of(results, cut_off)) text += std::string("\n") + kCutOffNote;
  return text;
}

}  // namespace berth::replay
