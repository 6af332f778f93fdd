// SPDX-License-Identifier: Apache-2.0
#include "server/kube/watch/reflector.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/keep_going.h"
#include "server/kube/client/body_queue.h"
#include "server/wire/api/api_json.h"

namespace berth::kube {
namespace {

using wire::WatchEventType;

constexpr std::size_t kKeptEventBytes = std::size_t{1} << 20;  // of a rare huge one no more
constexpr int kNotFound = 404, kUnauthorized = 401, kForbidden = 403;
constexpr int kTooManyRequests = 429;
constexpr std::string_view kNoServer =
    " (want the address of an API server or of a proxy to one: every API server serves this)";

// The versions after the one we know are still there: the same watch may be asked for again.
bool KeepsItsPlace(int code) {
  return code == kUnauthorized || code == kForbidden || code == kTooManyRequests || code >= 500;
}

// True if stop was requested.
bool Sleep(Duration duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, duration, [] { return false; });
  return stop.stop_requested();
}

}  // namespace

Reflector::Reflector(ApiClient& client, ObjectSink& sink, const Clock& clock,
                     ReflectorOptions options)
    : client_(client),
      sink_(sink),
      clock_(clock),
      options_(std::move(options)),
      backoff_(options_.first_pause, options_.longest_pause, options_.seed),
      thread_([this](const std::stop_token& stop) {
        // Out of memory: of what came just then a part may be lost.
        KeepGoing([&] { Run(stop); }, [this] { version_.clear(); });
      }) {}

Reflector::~Reflector() = default;

ReflectorStats Reflector::stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

template <class Change>
void Reflector::UpdateStats(Change change) {
  const MutexLock lock(mutex_);
  change(stats_);
}

void Reflector::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const Duration pause = version_.empty() ? List(stop) : Watch(stop);
    if (pause > Duration::zero()) Sleep(pause, stop);
  }
}

Duration Reflector::Failed(const std::string& problem, std::optional<Duration> retry_after) {
  UpdateStats([](ReflectorStats& stats) { ++stats.problems; });
  if (options_.on_problem) options_.on_problem(problem);
  return backoff_.Next(retry_after);
}

void Reflector::Progress() {
  progress_ = true;
  backoff_.Reset();
  const Instant now = clock_.Now();
  UpdateStats([now](ReflectorStats& stats) { stats.last_contact = now; });
}

Duration Reflector::List(const std::stop_token& stop) {
  Result<std::string> version;
  for (path_ = 0; path_ <= options_.other_paths.size(); ++path_) {
    refusal_ = {};
    sink_.ListBegins();
    version = ListPages(
        client_,
        {.path = path(),
         .query = options_.query,
         .page_items = options_.page_items,
         .idle_timeout = options_.idle_timeout,
         .max_page_bytes = options_.max_page_bytes,
         .max_object_bytes = options_.max_line_bytes},
        stop, [this](const PaddedText& object) { sink_.Listed(object); }, refusal_);
    if (stop.stop_requested()) return Duration::zero();
    if (version || refusal_.status != kNotFound) break;
  }
  if (path_ > options_.other_paths.size()) {
    path_ = 0;
    if (!options_.may_be_absent) return NotListed(version.error().message + std::string(kNoServer));
    FoundAbsent();
    return options_.absent_pause;
  }
  if (!version) return NotListed(version.error().message);
  if (stats().absent && options_.on_note) options_.on_note(path() + " is served");
  sink_.ListEnds();
  version_ = *std::move(version);
  const Instant now = clock_.Now();
  UpdateStats([now](ReflectorStats& stats) {
    stats.synced = true;
    stats.absent = stats.forbidden = false;
    ++stats.lists;
    stats.last_contact = now;
  });
  return Duration::zero();
}

const std::string& Reflector::path() const {
  return path_ == 0 ? options_.path : options_.other_paths[path_ - 1];
}

// What is known stays: rights can be lost for a moment, while the API server reads them.
Duration Reflector::NotListed(const std::string& why) {
  const std::string problem = "list " + path() + ": " + why;
  const bool forbidden = refusal_.status == kForbidden, known = stats().forbidden;
  UpdateStats([forbidden](ReflectorStats& stats) { stats.forbidden = forbidden; });
  if (!forbidden || !known) return Failed(problem, refusal_.retry_after);
  UpdateStats([](ReflectorStats& stats) { ++stats.problems; });
  return backoff_.Next(refusal_.retry_after);
}

void Reflector::FoundAbsent() {
  const Instant now = clock_.Now();
  if (!stats().absent) {
    if (options_.on_note) options_.on_note(path() + " is not served");
    sink_.NotServed();
  }
  UpdateStats([now](ReflectorStats& stats) {
    stats.synced = stats.absent = true;
    stats.forbidden = false;
    stats.last_contact = now;
  });
}

Duration Reflector::Watch(const std::stop_token& stop) {
  const auto timeout = std::chrono::ceil<std::chrono::seconds>(options_.watch_timeout).count();
  std::string path = this->path() +
                     "?watch=1&allowWatchBookmarks=true&timeoutSeconds=" + std::to_string(timeout) +
                     "&resourceVersion=" + EscapeForQuery(version_);
  if (!options_.query.empty()) path += "&" + options_.query;

  progress_ = false;
  const Instant begin = clock_.Now();
  LineSplitter lines(options_.max_line_bytes);
  After after = After::kReconnect;
  bool ours = false;  // it was ended by what TakeLine said
  auto answer = client_.Stream(path, options_.idle_timeout, stop, [&](std::string_view bytes) {
    return lines.Add(bytes, [&](const PaddedText& line) {
      after = TakeLine(line);
      ours = after != After::kGoOn;
      return !ours;
    });
  });
  if (stop.stop_requested()) return Duration::zero();
  UpdateStats([](ReflectorStats& stats) { ++stats.reconnects; });

  const std::string place = "watch " + this->path() + ": ";
  if (!answer) return Failed(place + answer.error().message);
  if (answer->status != 200) {
    if (!KeepsItsPlace(answer->status)) version_.clear();
    return Failed(place + DescribeRefusal(answer->status, answer->body), answer->retry_after);
  }
  if (lines.too_long()) {
    version_.clear();
    return Failed(place + "a line of more than " + std::to_string(options_.max_line_bytes) +
                  " bytes");
  }
  if (ours) {
    if (after == After::kRelist) version_.clear();
    return Failed(place + line_problem_);
  }
  if (lines.mid_line()) return Failed(place + "ended within a line");
  if (progress_) return Duration::zero();
  if (clock_.Now() - begin >= options_.short_watch) {
    backoff_.Reset();
    return Duration::zero();
  }
  return Failed(place + "ended at once");
}

Reflector::After Reflector::TakeLine(const PaddedText& line) {
  const auto event = wire::DecodeWatchEvent(line);
  if (!event) {
    // The rest may be sound from the last version on; twice at the same place it is not.
    line_problem_ = event.error().message;
    return progress_ ? After::kReconnect : After::kRelist;
  }
  if (event->type == WatchEventType::kError) return TakeErrorEvent(event->object);
  version_ = event->resource_version;
  Progress();
  if (event->type == WatchEventType::kBookmark) return After::kGoOn;
  object_.Clear(kKeptEventBytes);
  object_.Assign(event->object);
  if (event->type == WatchEventType::kDeleted) {
    sink_.Deleted(object_);
  } else {
    sink_.Changed(object_);
  }
  UpdateStats([](ReflectorStats& stats) { ++stats.events; });
  return After::kGoOn;
}

Reflector::After Reflector::TakeErrorEvent(std::string_view object) {
  const int code = wire::DecodeStatus(object).code;
  line_problem_ = "ERROR event: " + DescribeRefusal(code, object);
  return KeepsItsPlace(code) ? After::kReconnect : After::kRelist;
}

}  // namespace berth::kube
