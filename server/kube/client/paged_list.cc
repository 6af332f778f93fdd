// SPDX-License-Identifier: Apache-2.0
#include "server/kube/client/paged_list.h"

#include <algorithm>
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

// Takes fewer items until the page is small enough.
Result<ApiResponse> FetchPage(ApiClient& client, const ListRequest& request, Page& page,
                              const std::stop_token& stop, PaddedText& text) {
  while (true) {
    const std::size_t most = page.items > 1 ? request.max_page_bytes : request.max_object_bytes;
    bool fits = true;
    text.Clear(kKeptPageBytes);
    BERTH_TRY(ApiResponse answer, client.Stream(PathOf(request, page), request.idle_timeout, stop,
                                                [&](std::string_view bytes) {
                                                  fits = text.size() + bytes.size() <= most;
                                                  if (fits) text.Append(bytes);
                                                  return fits;
                                                }));
    if (fits) return answer;
    if (page.items == 1) {
      return Fail(Errc::kUnavailable, "an object of more than " + std::to_string(most) + " bytes");
    }
    page.items /= 2;
  }
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
  PaddedText text, object;
  Page page{.items = std::max(request.page_items, 1)};
  do {
    BERTH_TRY(ApiResponse answer, FetchPage(client, request, page, stop, text));
    if (stop.stop_requested()) return std::string();
    if (answer.status != 200) {
      const std::string problem = DescribeRefusal(answer.status, answer.body);
      refusal = std::move(answer);
      return Fail(Errc::kUnavailable, problem);
    }
    BERTH_TRY(wire::ListPage done, wire::DecodeListPage(text, [&](std::string_view listed) {
                object.Clear(kKeptObjectBytes);
                object.Assign(listed);
                take(object);
              }));
    if (done.next.empty()) return std::move(done.resource_version);
    page.token = std::move(done.next);
    // Twice as many as these would still be half of what may come.
    const bool is_small = text.size() < request.max_page_bytes / 4;
    if (is_small) page.items = std::min(2 * page.items, request.page_items);
  } while (true);
}

}  // namespace berth::kube
