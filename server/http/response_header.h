// SPDX-License-Identifier: Apache-2.0
//
// The bytes in front of a response's body.
#pragma once

#include <string>
#include <string_view>

#include "server/http/http_message.h"

namespace berth::http {

enum class AfterResponse {
  kKeepAlive,
  kKeepAliveHttp10,  // an HTTP/1.0 client needs the field
  kClose,
};

// Replaces `header` with the status line and the fields, up to and including the empty line.
void FormatResponseHeader(const HttpResponse& response, AfterResponse after, std::string& header);

inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace berth::http
