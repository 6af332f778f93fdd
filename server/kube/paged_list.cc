// SPDX-License-Identifier: Apache-2.0
#include "server/kube/paged_list.h"

#include <string_view>
#include <utility>

#include "server/kube/api_path.h"
#include "server/wire/watch_json.h"

namespace berth::kube {
namespace {

// Memory of a rare huge object or page is not kept.
constexpr std::size_t kKeptObjectBytes = std::size_t{1} << 20;
constexpr std::size_t kKeptPageBytes = std::size_t{64} << 20;

// next: the token of the page, "" = the first.
Result<ApiResponse> FetchPage(ApiClient& client, const ListRequest& request,
                              const std::string& next, const std::stop_token& stop,
                              PaddedText& page) {
  std::string path = request.path + "?limit=" + std::to_string(request.page_items);
  if (!request.query.empty()) path += "&" + request.query;
  if (!next.empty()) path += "&continue=" + EscapeForQuery(next);
  page.Clear(kKeptPageBytes);
  BERTH_TRY(ApiResponse answer,
            client.Stream(path, request.idle_timeout, stop, [&](std::string_view bytes) {
              page.Append(bytes);
              return page.size() <= request.max_page_bytes;
            }));
  if (page.size() > request.max_page_bytes) {
    return Fail(Errc::kUnavailable,
                "a page of more than " + std::to_string(request.max_page_bytes) + " bytes");
  }
  return answer;
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
  PaddedText page, object;
  std::string next;
  do {
    BERTH_TRY(ApiResponse answer, FetchPage(client, request, next, stop, page));
    if (stop.stop_requested()) return std::string();
    if (answer.status != 200) {
      const std::string problem = DescribeRefusal(answer.status, answer.body);
      refusal = std::move(answer);
      return Fail(Errc::kUnavailable, problem);
    }
    BERTH_TRY(wire::ListPage done, wire::DecodeListPage(page, [&](std::string_view text) {
                object.Clear(kKeptObjectBytes);
                object.Assign(text);
                take(object);
              }));
    if (done.next.empty()) return std::move(done.resource_version);
    next = std::move(done.next);
  } while (true);
}

}  // namespace berth::kube
