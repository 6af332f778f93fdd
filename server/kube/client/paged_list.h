// SPDX-License-Identifier: Apache-2.0
//
// A list of the API server, page by page.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/padded_text.h"
#include "base/result.h"
#include "server/kube/client/api_client.h"

namespace berth::kube {

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
// requested. While it hands over the objects of a page, the next one is fetched, on another thread.
// Two pages are in memory at a time, so that any number of objects can be listed; small pages
// grow again, up to page_items. Lists are of the newest state (no resourceVersion=0).
// Error: kUnavailable; refusal is the answer then, where the API server gave one that is not 200.
Result<std::string> ListPages(ApiClient& client, const ListRequest& request,
                              const std::stop_token& stop,
                              const std::function<void(const PaddedText& object)>& take,
                              ApiResponse& refusal);

// "403 Forbidden: pods is forbidden: User ... cannot list resource ...": a refusal's code and body.
std::string DescribeRefusal(int code, std::string_view body);

}  // namespace berth::kube
