// SPDX-License-Identifier: Apache-2.0
//
// Asks a running Berth, for the command line.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "server/cli/kubectl.h"

namespace berth {

// The address of a Berth.
struct ServerAddress {
  // http://HOST:PORT of a Berth, or of its debugListen; HOST:PORT alone means the same.
  std::string url = "http://127.0.0.1:8888";
  std::optional<KubectlTarget> cluster = {};  // if set, used instead of the URL
};

// The body of an answer with status 200, of `who`. Error: as AskServer.
Result<std::string> BodyOf(int status, std::string body, const std::string& who);

// The body of the answer. Error: kInvalidArgument for a malformed address or a request that the
// server refuses, kNotFound for status 404, kUnavailable otherwise.
Result<std::string> AskServer(const ServerAddress& at, const char* method, const std::string& path,
                              const std::string& body = "");

}  // namespace berth
