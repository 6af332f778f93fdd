// SPDX-License-Identifier: Apache-2.0
//
// The request target of an HTTP request line, taken apart.
#pragma once

#include <string>
#include <string_view>

namespace berth::http {

struct RequestTarget {
  std::string path;
  std::string query;  // without the '?'
};

// Cuts the scheme and authority of an absolute target, the fragment and the query; collapses
// repeated slashes and drops a trailing one. kube-scheduler's verb "/filter" arrives as "//filter",
// and a redirect would turn its POST into a GET, so all spellings must mean the same path:
//   "//filter/?timeout=5s"  ->  {"/filter", "timeout=5s"}
//   "http://berth:8080/filter" -> {"/filter", ""}
// Nothing is percent-decoded and dot segments are left alone: they match no route.
RequestTarget ParseRequestTarget(std::string_view target);

}  // namespace berth::http
