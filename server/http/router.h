// SPDX-License-Identifier: Apache-2.0
//
// Router: an HttpHandler that hands each request to the handler of its exact path and method.
//
//   path under a known prefix        the handler of the longest such prefix
//   unknown path                     404 {"error": "..."}
//   known path, method not added     405 with Allow, {"error": "..."}
//   HEAD on a path with GET          what GET answers (the server sends no body for HEAD)
//   OPTIONS on a known path          200 with Allow and no body
//
// TRACE and CONNECT cannot be added and so always end in 404 or 405. Nothing is ever redirected.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "server/http/http_message.h"

namespace berth::http {

// Add everything first, then let any number of threads call it.
class Router {
 public:
  // Answers METHOD PATH with the handler. Requires: the first handler of this pair; a path in
  // normal form ("/filter": leading slash, no trailing one), and GET, POST, PUT, PATCH or DELETE
  // (HEAD and OPTIONS come for free).
  void Add(std::string_view method, std::string_view path, HttpHandler handler);

  // The same for all paths below one: of "/pods" the handler answers "/pods/a/b" and not "/pods". A
  // path that was added itself comes first.
  void AddUnder(std::string_view method, std::string_view path, HttpHandler handler);

  HttpResponse operator()(HttpRequest& request) const;

 private:
  struct Route {
    std::map<std::string, HttpHandler, std::less<>> methods;
    std::string allow;  // "GET, HEAD"
  };

  using Routes = std::map<std::string, Route, std::less<>>;
  static void AddTo(Routes& routes, std::string_view method, std::string_view path,
                    HttpHandler handler);
  [[nodiscard]] const Route* Find(std::string_view path) const;  // nullptr: there is none

  Routes routes_, under_;
};

}  // namespace berth::http
