// SPDX-License-Identifier: Apache-2.0
#include "server/http/request_target.h"

namespace berth::http {
namespace {

// "http://host/path" (what a client of a proxy sends) without "http://host".
std::string_view WithoutOrigin(std::string_view target) {
  if (target.empty() || target.front() == '/') {
    return target;
  }
  const std::size_t scheme_end = target.find("://");
  if (scheme_end == std::string_view::npos) {
    return target;
  }
  const std::size_t path = target.find_first_of("/?#", scheme_end + 3);
  return path == std::string_view::npos ? std::string_view("/") : target.substr(path);
}

std::string CollapseSlashes(std::string_view path) {
  std::string result;
  result.reserve(path.size() + 1);
  for (const char c : path) {
    if (c != '/' || result.empty() || result.back() != '/') {
      result += c;
    }
  }
  if (result.size() > 1 && result.back() == '/') {
    result.pop_back();
  }
  if (result.empty()) {
    result = "/";
  }
  return result;
}

}  // namespace

RequestTarget ParseRequestTarget(std::string_view target) {
  target = WithoutOrigin(target);
  target = target.substr(0, target.find('#'));
  RequestTarget result;
  const std::size_t question = target.find('?');
  if (question != std::string_view::npos) {
    result.query = target.substr(question + 1);
    target = target.substr(0, question);
  }
  result.path = CollapseSlashes(target);
  return result;
}

}  // namespace berth::http
