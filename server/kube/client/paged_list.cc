// SPDX-License-Identifier: Apache-2.0
#include "server/kube/client/paged_list.h"

#include <algorithm>
#include <future>
#include <string_view>
#include <utility>

#include "server/kube/client/api_path.h"
#include "server/wire/api/watch_json.h"

namespace berth::kube {
namespace {

// Memory of a rare huge object or page is not kept.
constexpr std::size_t kKeptObjectBytes = std::size_t{1} << 20;
constexpr std::size_t kKeptPageBytes = std::size_t{64} << 20;

// The page to ask for. The token says where it begins and in which version: how many items a page
// has may change from one to the next.
struct Page {
  std::string token = {};  // "" = the first page
  int items = 1;
};

std::string PathOf(const ListRequest& request, const Page& page) {
  std::string path = request.path + "?limit=" + std::to_string(page.items);
  if (!request.query.empty()) path += "&" + request.query;
  if (!page.token.empty()) path += "&continue=" + EscapeForQuery(page.token);
  return path;
}

struct Fetched {
  Page page;
  PaddedText text;
  Result<ApiResponse> answer = ApiResponse();
};

// Takes fewer items until the page is small enough. text: whose memory is used.
Fetched FetchPage(ApiClient& client, const ListRequest& request, Page page,
                  const std::stop_token& stop, PaddedText text = {}) {
  Fetched fetched{std::move(page), std::move(text)};
  while (true) {
    const bool is_one = fetched.page.items == 1;
    const std::size_t most = is_one ? request.max_object_bytes : request.max_page_bytes;
    bool fits = true;
    fetched.text.Clear(kKeptPageBytes);
    fetched.answer = client.Stream(PathOf(request, fetched.page), request.idle_timeout, stop,
                                   [&](std::string_view bytes) {
                                     fits = fetched.text.size() + bytes.size() <= most;
                                     if (fits) fetched.text.Append(bytes);
                                     return fits;
                                   });
    if (!fetched.answer || fits) return fetched;
    if (is_one) {
      fetched.answer =
          Fail(Errc::kUnavailable, "an object of more than " + std::to_string(most) + " bytes");
      return fetched;
    }
    fetched.page.items /= 2;
  }
}

// Twice as many as these would still be half of what may come.
int ItemsAfter(const ListRequest& request, const Fetched& fetched) {
  const bool is_small = fetched.text.size() < request.max_page_bytes / 4;
  const int items = fetched.page.items;
  return is_small ? std::min(2 * items, request.page_items) : items;
}

}  // namespace

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
  PaddedText object, spare;
  Fetched fetched = FetchPage(client, request, {.items = std::max(request.page_items, 1)}, stop);
  while (true) {
    BERTH_TRY(ApiResponse answer, std::move(fetched.answer));
    if (stop.stop_requested()) return std::string();
    if (answer.status != 200) {
      const std::string problem = DescribeRefusal(answer.status, answer.body);
      refusal = std::move(answer);
      return Fail(Errc::kUnavailable, problem);
    }
    std::future<Fetched> next;  // its destructor waits
    const auto fetch_next = [&](const wire::ListPage& page) {
      if (page.next.empty() || next.valid()) return;
      next =
          std::async(std::launch::async, [&, page = Page{page.next, ItemsAfter(request, fetched)},
                                          text = std::move(spare)]() mutable {
            return FetchPage(client, request, std::move(page), stop, std::move(text));
          });
    };
    BERTH_TRY(wire::ListPage done, wire::DecodeListPage(
                                       fetched.text,
                                       [&](std::string_view listed) {
                                         object.Clear(kKeptObjectBytes);
                                         object.Assign(listed);
                                         take(object);
                                       },
                                       fetch_next));
    if (!next.valid()) return std::move(done.resource_version);
    spare = std::move(fetched.text);
    fetched = next.get();
  }
}

}  // namespace berth::kube
