// SPDX-License-Identifier: Apache-2.0
#include "server/kube/client/api_client.h"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <cpprest/base_uri.h>

#include "base/dns_name.h"
#include "server/wire/api/api_json.h"

namespace berth::kube {

std::string RefusalText(const ApiResponse& response) {
  const std::string message = wire::DecodeStatus(response.body).message;
  return "the API server answered " + std::to_string(response.status) +
         (message.empty() ? "" : ": " + message);
}

std::string ProblemOf(const Result<ApiResponse>& response) {
  if (!response) return response.error().message;
  return response->ok() ? "" : RefusalText(*response);
}

ApiRequest MergePatch(std::string path, std::string body, Duration timeout) {
  return {.method = "PATCH",
          .path = std::move(path),
          .body = std::move(body),
          .content_type = "application/merge-patch+json",
          .timeout = timeout};
}

namespace {

constexpr std::size_t kMostShown = 80;

tl::unexpected<Error> NoName(std::string_view what, std::string_view wanted,
                             std::string_view name) {
  return Invalid(std::string(what) + ": want a DNS-1123 " + std::string(wanted) + ", got \"" +
                 std::string(name.substr(0, kMostShown)) + "\"");
}

Result<std::string> Namespaced(std::string_view api, std::string_view namespace_name,
                               std::string_view resource) {
  if (!IsDnsLabel(namespace_name)) return NoName("namespace", "label", namespace_name);
  std::string path(api);
  return path.append("/namespaces/").append(namespace_name).append("/").append(resource);
}

Result<std::string> WithName(std::string path, std::string_view what, std::string_view name) {
  if (!IsDnsSubdomain(name)) return NoName(what, "name", name);
  return path.append("/").append(name);
}

// Memory of a rare huge object or page is not kept.
constexpr std::size_t kKeptObjectBytes = std::size_t{1} << 20;
constexpr std::size_t kKeptPageBytes = std::size_t{64} << 20;

// In memory at a time: one is read, the others come.
constexpr std::size_t kPages = 3;
// Where the head of a page ends at the latest; its token has some 100 bytes.
constexpr std::size_t kMostHeadBytes = std::size_t{16} << 10;

// The page to ask for. The token says where it begins and in which version: how many items a page
// has may change from one to the next.
struct Page {
  std::string token = {};  // "" = the first page
  int items = 1;
  bool is_usual = false;  // so many items made a small page before
};

std::string PathOf(const ListRequest& request, const Page& page) {
  std::string path = request.path + "?limit=" + std::to_string(page.items);
  if (!request.query.empty()) path += "&" + request.query;
  if (!page.token.empty()) path += "&continue=" + EscapeForQuery(page.token);
  return path;
}

// The texts of kPages pages. Any thread may call it.
class Texts {
 public:
  Texts() {
    for (std::size_t i = 0; i < kPages; ++i) free_.push_back(std::make_unique<PaddedText>());
  }

  struct GiveBack {
    Texts* texts;
    void operator()(PaddedText* text) const { texts->Return(std::unique_ptr<PaddedText>(text)); }
  };
  using Text = std::unique_ptr<PaddedText, GiveBack>;

  // Waits for one. nullptr: stop was requested first.
  Text Take(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const bool is_there = returned_.wait(lock, stop, [this] { return !free_.empty(); });
    if (!is_there) return Text(nullptr, GiveBack{this});
    Text text(free_.back().release(), GiveBack{this});
    free_.pop_back();
    return text;
  }

 private:
  void Return(std::unique_ptr<PaddedText> text) {
    text->Clear(kKeptPageBytes);
    {
      const std::scoped_lock lock(mutex_);
      free_.push_back(std::move(text));
    }
    returned_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable_any returned_;
  std::vector<std::unique_ptr<PaddedText>> free_;
};

struct Listing {
  ApiClient& client;
  const ListRequest& request;
  const std::stop_token& stop;
  Texts texts = {};
};

struct Ahead;

struct Fetched {
  Page page;
  Texts::Text text;
  Result<ApiResponse> answer = ApiResponse();
  std::shared_ptr<Ahead> next = nullptr;  // where it was asked for already
};

// A page that is fetched on another thread. Who drops it stops that, and waits.
struct Ahead {
  explicit Ahead(std::string which) : token(std::move(which)) {}
  ~Ahead() { stop.request_stop(); }

  const std::string token;
  std::stop_source stop;
  std::future<Fetched> fetched;  // its destructor waits
};

Fetched FetchPage(Listing& listing, Page page, const std::stop_token& stop);

std::shared_ptr<Ahead> FetchAhead(Listing& listing, Page page) {
  auto ahead = std::make_shared<Ahead>(page.token);
  ahead->fetched = std::async(
      std::launch::async, [&listing, page = std::move(page), stop = ahead->stop]() mutable {
        const std::stop_callback all(listing.stop, [&stop] { stop.request_stop(); });
        return FetchPage(listing, std::move(page), stop.get_token());
      });
  return ahead;
}

// Asks for the page after the one that comes, once its head is there. Returns whether there is
// nothing more to look for.
bool LookAhead(Listing& listing, Fetched& coming) {
  const auto head = wire::DecodeListHead(coming.text->view().substr(0, kMostHeadBytes));
  if (!head) return coming.text->size() >= kMostHeadBytes;
  if (!head->next.empty()) {
    coming.next = FetchAhead(listing, {head->next, coming.page.items, true});
  }
  return true;
}

// Takes fewer items until the page is small enough.
Fetched FetchPage(Listing& listing, Page page, const std::stop_token& stop) {
  const ListRequest& request = listing.request;
  Fetched fetched{std::move(page), listing.texts.Take(stop)};
  while (fetched.text != nullptr) {
    const bool is_one = fetched.page.items == 1;
    const std::size_t most = is_one ? request.max_object_bytes : request.max_page_bytes;
    bool fits = true, looked = !fetched.page.is_usual;
    fetched.next = nullptr;  // after fewer items another page is the next
    fetched.text->Clear(kKeptPageBytes);
    fetched.answer = listing.client.Download(PathOf(request, fetched.page), request.idle_timeout,
                                             stop, [&](std::string_view bytes) {
                                               fits = fetched.text->size() + bytes.size() <= most;
                                               if (fits) fetched.text->Append(bytes);
                                               if (fits && !looked)
                                                 looked = LookAhead(listing, fetched);
                                               return fits;
                                             });
    if (!fetched.answer || fits) break;
    if (is_one) {
      fetched.answer =
          Fail(Errc::kUnavailable, "an object of more than " + std::to_string(most) + " bytes");
      break;
    }
    fetched.page.items /= 2;
    fetched.page.is_usual = false;
  }
  return fetched;
}

// Twice as many items as these would still be half of what may come.
Page PageAfter(const ListRequest& request, const Fetched& fetched, const std::string& token) {
  const bool is_small = fetched.text->size() < request.max_page_bytes / 4;
  const int items = fetched.page.items;
  const int next = is_small ? std::min(2 * items, request.page_items) : items;
  return {token, next, is_small && next == items};
}

}  // namespace

Result<std::string> PodPath(std::string_view namespace_name, std::string_view name) {
  BERTH_TRY(std::string path, Namespaced("/api/v1", namespace_name, "pods"));
  return WithName(std::move(path), "pod name", name);
}

Result<std::string> PodsPath(std::string_view namespace_name) {
  return Namespaced("/api/v1", namespace_name, "pods");
}

Result<std::string> NodePath(std::string_view name) {
  return WithName("/api/v1/nodes", "node name", name);
}

Result<std::string> ClaimPath(std::string_view namespace_name, std::string_view name) {
  BERTH_TRY(std::string path,
            Namespaced("/apis/resource.k8s.io/v1", namespace_name, "resourceclaims"));
  return WithName(std::move(path), "claim name", name);
}

Result<std::string> EventsPath(std::string_view namespace_name) {
  return Namespaced("/api/v1", namespace_name, "events");
}

std::string EscapeForQuery(std::string_view text) {
  return web::uri::encode_data_string(std::string(text));
}

std::string DescribeRefusal(int code, std::string_view body) {
  const wire::ApiStatus status = wire::DecodeStatus(body);
  std::string text = std::to_string(code);
  if (!status.reason.empty()) text += " " + status.reason;
  if (!status.message.empty()) text += ": " + status.message;
  return text;
}

Result<std::string> ListPages(ApiClient& client, const ListRequest& request,
                              const std::stop_token& stop,
                              const std::function<void(const PaddedText& object)>& take,
                              ApiResponse& refusal) {
  PaddedText object;
  Listing listing{client, request, stop};
  Fetched fetched = FetchPage(listing, {.items = std::max(request.page_items, 1)}, stop);
  while (true) {
    BERTH_TRY(ApiResponse answer, std::move(fetched.answer));
    if (stop.stop_requested()) return std::string();
    if (answer.status != 200) {
      const std::string problem = DescribeRefusal(answer.status, answer.body);
      refusal = std::move(answer);
      return Fail(Errc::kUnavailable, problem);
    }
    const auto fetch_next = [&](const wire::ListPage& page) {
      const bool is_asked = fetched.next != nullptr && fetched.next->token == page.next;
      if (page.next.empty() || is_asked) return;
      fetched.next = FetchAhead(listing, PageAfter(request, fetched, page.next));
    };
    BERTH_TRY(wire::ListPage done, wire::DecodeListPage(
                                       *fetched.text,
                                       [&](std::string_view listed) {
                                         object.Clear(kKeptObjectBytes);
                                         object.Assign(listed);
                                         take(object);
                                       },
                                       fetch_next));
    if (done.next.empty()) return std::move(done.resource_version);
    const std::shared_ptr<Ahead> next = std::move(fetched.next);
    fetched.text.reset();
    fetched = next->fetched.get();
  }
}

}  // namespace berth::kube
