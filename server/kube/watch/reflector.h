// SPDX-License-Identifier: Apache-2.0
//
// Reflector: keeps one kind of object of the API server mirrored in an ObjectSink, on a thread of
// its own: list once, then watch from the version of the list, until it is stopped.
//
//   list --ok--> watch --the server ends it, or the connection breaks--> watch from the last one
//     ^            |
//     +------------+-- 410 Gone, or an event that cannot be read: the versions in between are lost
//
// Lists are paged and of the newest state (no resourceVersion=0): a list out of the API server's
// cache could be older than what was seen before, and placements are rebuilt from it exactly.
// Failures are reported and retried with growing, jittered pauses; nothing ends the thread but
// Stop. An API that not every API server has (may_be_absent) counts as synced while it is answered
// 404, with nothing in it, and is looked for now and then: it may come later, and go again. Of a
// resource that every API server has, a 404 is a failure like any other: an address or a proxy is
// wrong, and what is known stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/padded_text.h"
#include "server/kube/client/api_client.h"
#include "server/kube/lead/write_journal.h"

namespace berth::kube {

// Where the objects go, each as JSON. All calls come on the reflector's thread; a slow sink slows
// the API server down.
class ObjectSink {
 public:
  virtual ~ObjectSink() = default;
  // A list is about to be asked for: what exists by now and is not in it is gone when it ends. A
  // list may begin again before it has ended: what it brought so far is to be forgotten.
  virtual void ListBegins() = 0;
  virtual void Listed(const PaddedText& object) = 0;
  virtual void ListEnds() = 0;                         // whatever was not listed is gone
  virtual void Changed(const PaddedText& object) = 0;  // new or modified
  virtual void Deleted(const PaddedText& object) = 0;  // its last state
  // Instead of ListEnds: the API server has no such kind of object.
  virtual void NotServed() { ListEnds(); }
};

struct ReflectorOptions {
  std::string path;  // "/api/v1/pods"
  // The same objects in other versions of the API, the best first: where `path` is not served.
  std::vector<std::string> other_paths = {};
  bool may_be_absent = false;  // not every API server serves it
  std::string query;           // more of it: "fieldSelector=spec.nodeName!="; "" = none
  int page_items = 500;
  Duration watch_timeout = std::chrono::seconds(300);  // the server ends a watch after it
  // The server sends a bookmark about once a minute.
  Duration idle_timeout = std::chrono::seconds(150);
  Duration first_pause = std::chrono::milliseconds(500);  // after a failure; doubles up to
  Duration longest_pause = std::chrono::seconds(30);
  Duration absent_pause = std::chrono::seconds(30);    // between looks for an API that is not there
  Duration short_watch = std::chrono::seconds(1);      // an empty watch that ends sooner has failed
  std::size_t max_line_bytes = std::size_t{64} << 20;  // of a watch; an object of a list
  std::size_t max_page_bytes = std::size_t{32} << 20;  // of a list: fewer items beyond it
  std::uint64_t seed = 0;                              // of the jitter
  // Each failure: "list /api/v1/pods: 403 Forbidden: ...". On the reflector's thread.
  // A list that stays forbidden is reported once.
  std::function<void(const std::string& problem)> on_problem;
  // What is no failure: "/api/v1/pods is not served", "... is served". On the reflector's thread.
  std::function<void(const std::string& note)> on_note;
};

struct ReflectorStats {
  bool synced = false;  // a list was complete once, or the API is not there
  bool absent = false;
  bool forbidden = false;        // the last list was answered 403
  std::uint64_t lists = 0;       // complete ones
  std::uint64_t reconnects = 0;  // watches that ended, for any reason
  std::uint64_t events = 0;      // but bookmarks
  std::uint64_t problems = 0;
  Instant last_contact{};  // when the server last sent something useful
};

class Reflector {
 public:
  // Starts at once. Requires: client, sink and clock live longer.
  Reflector(ApiClient& client, ObjectSink& sink, const Clock& clock, ReflectorOptions options);
  ~Reflector();  // stops, and waits for a call of the sink that runs

  // Any thread.
  [[nodiscard]] ReflectorStats stats() const BERTH_EXCLUDES(mutex_);

 private:
  void Run(const std::stop_token& stop);
  // Each does its step and returns how long to pause before the next one.
  Duration List(const std::stop_token& stop);
  Duration Watch(const std::stop_token& stop);

  [[nodiscard]] const std::string& path() const;
  void FoundAbsent();
  Duration NotListed(const std::string& why);
  // What one line of a watch made of it.
  enum class After { kGoOn, kReconnect, kRelist };
  After TakeLine(const PaddedText& line);
  After TakeErrorEvent(std::string_view object);

  Duration Failed(const std::string& problem, std::optional<Duration> retry_after = std::nullopt);
  void Progress();
  template <class Change>
  void UpdateStats(Change change) BERTH_EXCLUDES(mutex_);

  ApiClient& client_;
  ObjectSink& sink_;
  const Clock& clock_;
  const ReflectorOptions options_;

  // The reflector's thread alone.
  Backoff backoff_;           // since the last progress
  std::size_t path_ = 0;      // 0: options_.path; i: options_.other_paths[i - 1]
  std::string version_;       // to watch from; "" = list first
  PaddedText object_;         // what the sink is given
  bool progress_ = false;     // of the watch that runs
  std::string line_problem_;  // why TakeLine ended the watch
  ApiResponse refusal_;       // of the list that failed; status 0 = no answer

  mutable Mutex mutex_;
  ReflectorStats stats_ BERTH_GUARDED_BY(mutex_);

  std::jthread thread_;  // last: it uses all the others
};

}  // namespace berth::kube
