// SPDX-License-Identifier: Apache-2.0
//
// PageWriter: writes the pages for people and scrapers (/metrics, /debug) on one thread of low
// priority, so that viewers never delay the threads that answer kube-scheduler.
//
// A page is written once for all requests that wait for it, compressed once for those that accept
// gzip, and not at all while its content is unchanged. An answer is never older than its request.
// Between two versions of a page the writer pauses four times as long as the last one took, at most
// three seconds: a page costs at most a fifth of a core, whatever the number of viewers.
//
// Answers that differ for every request (about one pod, say) are written in the order of the
// requests, between the pages and with the same pauses, like one page.
//
// Memory: the last text of each page (and its compressed form) is kept, and up to kMostSentBytes of
// older texts may still be on their way to slow clients; beyond that requests get 503.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/padded_text.h"
#include "server/http/http_message.h"

namespace berth {

// The content of a page at one moment.
struct PageDraft {
  // If it equals the previous draft's version, the text is not written again. Empty: always
  // written.
  std::string version;
  // Kept as long as the text, so that a version may consist of addresses.
  std::shared_ptr<const void> shown;
  std::function<std::string()> write;
};

struct Page {
  std::string content_type;
  std::function<PageDraft()> draft;  // must be quick
  std::string policy = {};           // as HttpResponse::policy
};

// The answer to one request for the page, written on the calling thread.
http::HttpResponse WritePage(const Page& page);

// The request for an answer of its own.
struct OwnRequest {
  std::string path, query;
  PaddedText body = {};
  std::function<bool()> waits = {};  // Reply::waits; empty: the answer is made at once
};
using OwnAnswer = std::function<http::HttpResponse(OwnRequest& request)>;

// Any thread may call it.
class PageWriter {
 public:
  static constexpr std::size_t kMostSentBytes = std::size_t{64} << 20;
  // Default maximum number of waiting requests for answers of their own; more get 503.
  static constexpr std::size_t kMostWaiting = 64;

  // Throws what std::thread throws.
  explicit PageWriter(std::size_t most_waiting = kMostWaiting);
  // Requests that wait for a page get 503.
  ~PageWriter();

  // The handler that answers with the page; the writer outlives its calls.
  http::HttpHandler Handler(Page page) BERTH_EXCLUDES(mutex_);

  // A handler for requests that each get an answer of their own.
  http::HttpHandler Handler(OwnAnswer answer) BERTH_EXCLUDES(mutex_);

  // Bytes of the texts that are kept: the current ones, and those on their way to clients.
  [[nodiscard]] std::size_t held_bytes() const { return *held_bytes_; }

 private:
  struct Request {
    http::Reply reply;
    bool accepts_gzip = false;
    std::string if_none_match;
  };
  struct Errand {
    http::Reply reply;
    std::function<http::HttpResponse()> answer;
  };
  class Shelf;  // a page, the requests that wait for it, and its last text

  void Run() BERTH_EXCLUDES(mutex_);
  // A page with waiting requests whose pause is over. nullptr if there is none; then *next is the
  // time to check again.
  Shelf* NextDue(Instant now, Instant& next) BERTH_REQUIRES(mutex_);
  // Whether the first of the errands is due; if not, *next is brought forward to when it is.
  [[nodiscard]] bool ErrandIsDue(Instant now, Instant& next) const BERTH_REQUIRES(mutex_);
  static void Serve(const Errand& errand);
  void Serve(Shelf& shelf, const std::vector<Request>& requests);
  bool Write(Shelf& shelf);
  [[nodiscard]] http::HttpResponse AnswerTo(const Request& request, Shelf& shelf) const;
  [[nodiscard]] std::shared_ptr<const std::string> Hold(std::string text) const;

  // Shared with the texts, which may outlive the writer.
  const std::shared_ptr<std::atomic<std::size_t>> held_bytes_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  const std::size_t most_waiting_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::unique_ptr<Shelf>> shelves_ BERTH_GUARDED_BY(mutex_);
  std::deque<Errand> errands_ BERTH_GUARDED_BY(mutex_);
  Instant errands_rested_ BERTH_GUARDED_BY(mutex_){};  // end of their pause
  bool ending_ BERTH_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace berth
