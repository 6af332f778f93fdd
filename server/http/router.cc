// SPDX-License-Identifier: Apache-2.0
#include "server/http/router.h"

#include <utility>

#include "base/check.h"

namespace berth::http {
namespace {

bool MayBeAdded(std::string_view method) {
  return method == "GET" || method == "POST" || method == "PUT" || method == "PATCH" ||
         method == "DELETE";
}

}  // namespace

void Router::AddTo(Routes& routes, std::string_view method, std::string_view path,
                   HttpHandler handler) {
  BERTH_CHECK(MayBeAdded(method));
  BERTH_CHECK(!path.empty() && path.front() == '/' && (path.size() == 1 || path.back() != '/'));
  Route& route = routes[std::string(path)];
  BERTH_CHECK(route.methods.emplace(method, std::move(handler)).second);
  route.allow.clear();
  for (const auto& [name, unused] : route.methods) {
    route.allow += route.allow.empty() ? "" : ", ";
    route.allow += name == "GET" ? "GET, HEAD" : name;
  }
}

void Router::Add(std::string_view method, std::string_view path, HttpHandler handler) {
  AddTo(routes_, method, path, std::move(handler));
}

void Router::AddUnder(std::string_view method, std::string_view path, HttpHandler handler) {
  AddTo(under_, method, path, std::move(handler));
}

const Router::Route* Router::Find(std::string_view path) const {
  if (const auto found = routes_.find(path); found != routes_.end()) return &found->second;
  for (std::size_t end = path.rfind('/'); end != std::string_view::npos && end > 0;
       end = path.rfind('/', end - 1)) {
    const auto found = under_.find(path.substr(0, end));
    if (found != under_.end()) return &found->second;
  }
  return nullptr;
}

HttpResponse Router::operator()(HttpRequest& request) const {
  const Route* const known = Find(request.path);
  if (known == nullptr) {
    return ErrorResponse(404, "no such path");
  }
  const Route& route = *known;
  const std::string_view method = request.method == "HEAD" ? "GET" : request.method;
  const auto handler = route.methods.find(method);
  if (handler != route.methods.end()) {
    return handler->second(request);
  }
  HttpResponse response =
      method == "OPTIONS" ? HttpResponse() : ErrorResponse(405, "want " + route.allow);
  response.allow = route.allow;
  return response;
}

}  // namespace berth::http
