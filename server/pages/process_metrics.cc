// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <unistd.h>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>

#include "server/pages/metrics_parts.h"

namespace berth {
namespace {

std::string TextOf(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The number behind `name` in a file of lines "NAME NUMBER ...".
std::optional<std::int64_t> Behind(std::string_view name, const std::string& text) {
  const std::size_t at = text.find(name);
  if (at == std::string::npos) return std::nullopt;
  return std::strtoll(text.c_str() + at + name.size(), nullptr, 10);
}

// Of /proc/self/stat, numbered as in proc(5); the second one may have blanks in its parentheses.
std::optional<std::int64_t> FieldOf(const std::string& stat, int number) {
  std::size_t at = stat.rfind(')');
  for (int field = 2; field < number && at != std::string::npos; ++field) {
    at = stat.find(' ', at + 1);
  }
  if (at == std::string::npos) return std::nullopt;
  return std::strtoll(stat.c_str() + at, nullptr, 10);
}

// Seconds since 1970: the kernel counts from the start of the machine.
std::optional<double> StartTime(const std::string& stat) {
  const auto started = FieldOf(stat, 22), booted = Behind("btime ", TextOf("/proc/stat"));
  const std::int64_t per_second = sysconf(_SC_CLK_TCK);
  if (!started || !booted || per_second <= 0) return std::nullopt;
  return static_cast<double>(*booted) +
         static_cast<double>(*started) / static_cast<double>(per_second);
}

std::optional<std::int64_t> OpenFiles() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error) return std::nullopt;
  return std::distance(begin(files), end(files)) - 1;  // without the one that lists them
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::int64_t MostFiles() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<std::int64_t>(limit.rlim_cur);
}

}  // namespace

void AddProcessMetrics(MetricsText& text) {
  const auto gauge = [&text](const char* name, const char* help, auto value) {
    if (value) text.Gauge(name, help).Sample(*value);
  };
  const std::string stat = TextOf("/proc/self/stat");
  static const std::optional<double> kStarted = StartTime(stat);  // /proc/stat is long
  text.Counter("process_cpu_seconds_total", "CPU time, user and system").Sample(CpuSeconds());
  gauge("process_start_time_seconds", "Start of the process, Unix time", kStarted);
  gauge("process_virtual_memory_bytes", "Virtual memory", FieldOf(stat, 23));
  auto resident = FieldOf(stat, 24);  // pages
  if (resident) *resident *= sysconf(_SC_PAGESIZE);
  gauge("process_resident_memory_bytes", "Resident memory", resident);
  gauge("process_open_fds", "Open file descriptors", OpenFiles());
  gauge("process_max_fds", "Maximum number of open file descriptors", std::optional(MostFiles()));
}

void AddHttpMetrics(const http::HttpServerStats& stats, MetricsText& text) {
  text.Gauge("berth_http_connections", "Connections open now").Sample(stats.open_connections);
  text.Counter("berth_http_connections_total", "Connections accepted").Sample(stats.accepted);
  text.Counter("berth_http_connections_refused_total",
               "Connections closed at once: too many, or out of file descriptors")
      .Sample(stats.refused_connections);
  text.Counter("berth_http_requests_refused_total",
               "Requests rejected before any handler: malformed, too large or too slow")
      .Sample(stats.refused_requests);
  text.Counter("berth_http_timeouts_total", "Connections whose client was too slow")
      .Sample(stats.timeouts);
  text.Counter("berth_http_tls_failures_total", "TLS handshakes that failed")
      .Sample(stats.tls_handshake_failures);
  text.Gauge("berth_tls_certificate_expiry_timestamp_seconds",
             "Expiry of the server certificate in use, Unix time; 0 with plain HTTP")
      .Sample(stats.certificate_expires);
  text.Counter("berth_unexpected_exceptions_total",
               "Handlers that threw an exception: always a bug of Berth")
      .Sample(stats.handler_exceptions);
  text.Counter("berth_http_responses_total", "Responses by status class");
  for (std::size_t i = 2; i < stats.responses_by_class.size(); ++i) {
    text.Sample(stats.responses_by_class[i], {{"class", std::to_string(i) + "xx"}});
  }
}

}  // namespace berth
