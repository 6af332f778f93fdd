// SPDX-License-Identifier: Apache-2.0
#include "server/pages/page_writer.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "base/keep_going.h"

namespace berth {
namespace {

constexpr int kNiceness = 10;
constexpr int kRestPerWork = 4;
constexpr Duration kMostRest = std::chrono::seconds(3);

// Best effort: without it the writer is a thread like the others.
void LowerPriority() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNiceness);
}

// Empty if zlib fails.
std::string Gzip(const std::string& text) {
  constexpr int kFastest = 1, kGzipFormat = 16, kMemory = 8;
  z_stream stream{};
  if (deflateInit2(&stream, kFastest, Z_DEFLATED, MAX_WBITS + kGzipFormat, kMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  std::string packed(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed.resize(whole ? stream.total_out : 0);
  deflateEnd(&stream);
  packed.shrink_to_fit();
  return packed;
}

// A weak tag, because the compressed form has the same one.
std::string TagOf(const std::string& text) {
  return "W/\"" + std::to_string(std::hash<std::string>()(text)) + "\"";
}

// Whether the field, a list of tags or "*", has the tag.
bool Names(std::string_view if_none_match, std::string_view tag) {
  tag.remove_prefix(2);  // W/ does not count (RFC 9110 section 13.1.2)
  return if_none_match == "*" || if_none_match.find(tag) != std::string_view::npos;
}

http::HttpResponse Unavailable(std::string_view why) { return http::ErrorResponse(503, why); }

}  // namespace

http::HttpResponse WritePage(const Page& page) {
  http::HttpResponse response;
  response.content_type = page.content_type;
  response.policy = page.policy;
  response.body = page.draft().write();
  return response;
}

class PageWriter::Shelf {
 public:
  explicit Shelf(Page shown) : page(std::move(shown)) {}

  const Page page;
  std::vector<Request> waiting;  // under the writer's mutex, as `rested`
  Instant rested{};              // end of its pause
  // Only used by the writer's thread.
  PageDraft last;
  std::string tag;
  std::shared_ptr<const std::string> text, packed;  // packed: once a request accepts it
};

PageWriter::PageWriter(std::size_t most_waiting)
    : most_waiting_(most_waiting), thread_([this] { KeepGoing([this] { Run(); }); }) {}

PageWriter::~PageWriter() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
  const MutexLock lock(mutex_);
  for (const auto& shelf : shelves_) {
    for (const Request& request : shelf->waiting)
      request.reply(Unavailable("the server is stopping"));
  }
  for (const Errand& errand : errands_) errand.reply(Unavailable("the server is stopping"));
}

http::HttpHandler PageWriter::Handler(Page page) {
  Shelf* shelf = nullptr;
  {
    const MutexLock lock(mutex_);
    shelf = shelves_.emplace_back(std::make_unique<Shelf>(std::move(page))).get();
  }
  return [this, shelf](http::HttpRequest& request) {
    http::HttpResponse response;
    response.later = [this, shelf, gzip = request.accepts_gzip,
                      tags = std::string(request.if_none_match)](const http::Reply& reply) {
      {
        const MutexLock lock(mutex_);
        shelf->waiting.push_back({reply, gzip, tags});
      }
      changed_.NotifyOne();
    };
    return response;
  };
}

http::HttpHandler PageWriter::Handler(OwnAnswer answer) {
  return [this, answer = std::move(answer)](http::HttpRequest& request) {
    http::HttpResponse response;
    auto own = std::make_shared<OwnRequest>(
        OwnRequest{std::string(request.path), std::string(request.query), std::move(request.body)});
    response.later = [this, own,
                      written = [answer, own] { return answer(*own); }](const http::Reply& reply) {
      own->waits = [reply] { return reply.waits(); };
      bool has_room = false;
      {
        const MutexLock lock(mutex_);
        has_room = errands_.size() < most_waiting_;
        if (has_room) errands_.push_back({reply, written});
      }
      if (!has_room) return reply(Unavailable("too many requests wait"));
      changed_.NotifyOne();
    };
    return response;
  };
}

bool PageWriter::ErrandIsDue(Instant now, Instant& next) const {
  if (errands_.empty()) return false;
  if (errands_rested_ <= now) return true;
  next = std::min(next, errands_rested_);
  return false;
}

void PageWriter::Serve(const Errand& errand) {
  try {
    if (!errand.reply.waits()) return errand.reply(Unavailable("the client has disconnected"));
    errand.reply(errand.answer());
  } catch (const std::exception&) {  // out of memory: it costs the answer, not the process
    errand.reply(Unavailable("out of memory"));
  }
}

PageWriter::Shelf* PageWriter::NextDue(Instant now, Instant& next) {
  next = Instant::max();
  for (const auto& shelf : shelves_) {
    if (shelf->waiting.empty()) continue;
    if (shelf->rested <= now) return shelf.get();
    next = std::min(next, shelf->rested);
  }
  return nullptr;
}

void PageWriter::Run() {
  LowerPriority();
  const auto rest_after = [](Instant began) {
    const Instant now = std::chrono::steady_clock::now();
    return now + std::min<Duration>(kRestPerWork * (now - began), kMostRest);
  };
  while (true) {
    Shelf* shelf = nullptr;
    std::vector<Request> requests;
    std::optional<Errand> errand;
    {
      const MutexLock lock(mutex_);
      while (!ending_) {
        Instant next{};
        const Instant now = std::chrono::steady_clock::now();
        shelf = NextDue(now, next);
        if (shelf != nullptr || ErrandIsDue(now, next)) break;
        if (next == Instant::max()) {
          changed_.Wait(mutex_);
        } else {
          changed_.WaitUntil(mutex_, next);
        }
      }
      if (ending_) return;
      if (shelf != nullptr) {
        requests.swap(shelf->waiting);
      } else {
        errand = std::move(errands_.front());
        errands_.pop_front();
      }
    }
    const Instant began = std::chrono::steady_clock::now();
    if (errand) {
      Serve(*errand);
    } else {
      Serve(*shelf, requests);
    }
    const MutexLock lock(mutex_);
    (errand ? errands_rested_ : shelf->rested) = rest_after(began);
  }
}

std::shared_ptr<const std::string> PageWriter::Hold(std::string text) const {
  *held_bytes_ += text.size();
  return {new std::string(std::move(text)), [held = held_bytes_](const std::string* gone) {
            *held -= gone->size();
            delete gone;
          }};
}

// False if too many older texts are still on their way.
bool PageWriter::Write(Shelf& shelf) {
  PageDraft draft = shelf.page.draft();
  if (!shelf.text || draft.version.empty() || draft.version != shelf.last.version) {
    shelf.text.reset();
    shelf.packed.reset();
    if (held_bytes() > kMostSentBytes) return false;
    shelf.text = Hold(draft.write());
    shelf.tag = TagOf(*shelf.text);
  }
  draft.write = nullptr;
  shelf.last = std::move(draft);
  return true;
}

http::HttpResponse PageWriter::AnswerTo(const Request& request, Shelf& shelf) const {
  http::HttpResponse response;
  response.etag = shelf.tag;
  if (!request.if_none_match.empty() && Names(request.if_none_match, shelf.tag)) {
    response.status = 304;
    response.content_type.clear();
    return response;
  }
  response.content_type = shelf.page.content_type;
  response.policy = shelf.page.policy;
  if (request.accepts_gzip && !shelf.packed) shelf.packed = Hold(Gzip(*shelf.text));
  response.gzip = request.accepts_gzip && !shelf.packed->empty();
  response.shared_body = response.gzip ? shelf.packed : shelf.text;
  return response;
}

void PageWriter::Serve(Shelf& shelf, const std::vector<Request>& requests) {
  std::string_view why = "too many pages are held";
  try {
    if (Write(shelf)) {
      for (const Request& request : requests) request.reply(AnswerTo(request, shelf));
      return;
    }
  } catch (const std::exception&) {  // it costs the page, not the process
    why = "out of memory";
  }
  // Requests that are answered already keep their answer.
  for (const Request& request : requests) request.reply(Unavailable(why));
}

}  // namespace berth
