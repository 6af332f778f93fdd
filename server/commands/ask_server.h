// SPDX-License-Identifier: Apache-2.0
//
// A running Berth, as the command line asks it.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "server/cli/kubectl.h"

namespace berth {

// Where it is.
struct ServerAddress {
  // http://HOST:PORT of a Berth, or of its debugListen; HOST:PORT alone means the same.
  std::string url = "http://127.0.0.1:8888";
  std::optional<KubectlTarget> cluster = {};  // in the place of the URL
};

// The body of the answer. Error: kInvalidArgument for an address that is none or a request that the
// server refuses, kNotFound where it says so, kUnavailable.
Result<std::string> AskServer(const ServerAddress& at, const char* method, const std::string& path,
                              const std::string& body = "");

}  // namespace berth
