// SPDX-License-Identifier: Apache-2.0
//
// Ask: one request over plain TCP, for the command line.
#pragma once

#include <string>

#include "base/result.h"

namespace berth::http {

struct Answer {
  int status = 0;
  std::string body;
};
// address: HOST:PORT. There is no deadline: a large plan takes as long as it takes. Error:
// kUnavailable where the exchange fails; any status is an answer.
Result<Answer> Ask(const std::string& address, const std::string& method, const std::string& path,
                   const std::string& body);

}  // namespace berth::http
