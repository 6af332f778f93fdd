// SPDX-License-Identifier: Apache-2.0
//
// A running Berth, as the command line asks it.
#pragma once

#include <string>

#include "base/result.h"

namespace berth {

// server: http://HOST:PORT of a Berth, or of its debugListen; HOST:PORT alone means the same. The
// body of the answer. Error: kInvalidArgument for an address that is none or a request that the
// server refuses, kNotFound where it says so, kUnavailable.
Result<std::string> AskServer(const std::string& server, const char* method,
                              const std::string& path, const std::string& body = "");

}  // namespace berth
