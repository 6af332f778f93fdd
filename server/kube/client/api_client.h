// SPDX-License-Identifier: Apache-2.0
//
// ApiClient: the port to the Kubernetes API server. HttpApiClient speaks to a real one, tests bring
// one in memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/padded_text.h"
#include "base/result.h"

namespace berth::kube {

struct ApiRequest {
  std::string method = "GET";
  std::string path;       // with its query: "/api/v1/pods?limit=500"
  std::string body = {};  // JSON; empty = none
  std::string content_type = "application/json";
  Duration timeout = std::chrono::seconds(10);  // for the whole exchange
};

struct ApiResponse {
  int status = 0;
  std::string body;
  std::optional<Duration> retry_after;  // the header of a 429 or 503

  [[nodiscard]] bool ok() const { return status >= 200 && status < 300; }
};

// "the API server answered 409: <the message of its Status>", for an answer that is not ok().
std::string RefusalText(const ApiResponse& response);
// The same, or why there is no answer; "" for one that is ok().
std::string ProblemOf(const Result<ApiResponse>& response);

// A PATCH with a merge patch.
ApiRequest MergePatch(std::string path, std::string body, Duration timeout);

// What a list or a watch reads, as it arrives. false ends the stream from our side.
using StreamSink = std::function<bool(std::string_view bytes)>;

// Any thread may call any function, several at a time.
class ApiClient {
 public:
  virtual ~ApiClient() = default;

  // Blocks until answered: any status is a value. Error: kUnavailable when no answer came - the
  // server may or may not have carried the request out.
  virtual Result<ApiResponse> Send(const ApiRequest& request) = 0;

  // GETs the path and hands the body of a 200 to the sink, on the calling thread, in pieces as they
  // come; a sink that takes its time slows the server down. Returns when the server ended the body,
  // the sink returned false or stop was requested (all ok()), with the answer - its body is empty
  // for a 200. Error: kUnavailable when the connection broke or nothing came for idle_timeout.
  virtual Result<ApiResponse> Stream(const std::string& path, Duration idle_timeout,
                                     const std::stop_token& stop, const StreamSink& sink) = 0;

  // The same, for a body that is long and has an end: the sink gets its beginning at once, and the
  // rest in large pieces, or in small ones where it comes slowly.
  virtual Result<ApiResponse> Download(const std::string& path, Duration idle_timeout,
                                       const std::stop_token& stop, const StreamSink& sink) {
    return Stream(path, idle_timeout, stop, sink);
  }
};

// Paths of the API server in which names from outside become parts: of requests, of annotations. A
// name that is none could lead anywhere, with Berth's rights.

// Error: kInvalidArgument "namespace: want a DNS-1123 label, got \"a/../b\"".
Result<std::string> PodPath(std::string_view namespace_name, std::string_view name);
Result<std::string> PodsPath(std::string_view namespace_name);
Result<std::string> NodePath(std::string_view name);
Result<std::string> ClaimPath(std::string_view namespace_name, std::string_view name);
Result<std::string> EventsPath(std::string_view namespace_name);

// For the value of a query's parameter.
std::string EscapeForQuery(std::string_view text);

// A list of the API server, page by page.

struct ListRequest {
  std::string path;        // "/api/v1/pods"
  std::string query = {};  // more of it: "fieldSelector=spec.nodeName!="
  int page_items = 500;
  Duration idle_timeout = std::chrono::seconds(30);
  // A page of more is asked for again with half of the items. A single object may be larger: the
  // API server admits one of 1.5 MiB as it is stored; as JSON it can be six times as large.
  std::size_t max_page_bytes = std::size_t{32} << 20;
  std::size_t max_object_bytes = std::size_t{64} << 20;  // a page of one item
};

// Hands every object to `take`, and returns the resourceVersion of the list; "" where stop was
// requested. While it hands over the objects of a page, the next ones are fetched, on other
// threads: each names its next one in its head, so that two may be on their way. Three pages are in
// memory at a time, so that any number of objects can be listed; small pages grow again, up to
// page_items. Lists are of the newest state (no resourceVersion=0).
// Error: kUnavailable; refusal is the answer then, where the API server gave one that is not 200.
Result<std::string> ListPages(ApiClient& client, const ListRequest& request,
                              const std::stop_token& stop,
                              const std::function<void(const PaddedText& object)>& take,
                              ApiResponse& refusal);

// "403 Forbidden: pods is forbidden: User ... cannot list resource ...": a refusal's code and body.
std::string DescribeRefusal(int code, std::string_view body);

}  // namespace berth::kube
