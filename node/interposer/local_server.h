// SPDX-License-Identifier: Apache-2.0
//
// A small gRPC server on a socket of this machine.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace berth::node {

// Replaces what is at the path. Error: kUnavailable.
Result<std::unique_ptr<grpc::Server>> ServeOn(const std::string& path, grpc::Service& service);

// Breaks what is under way off and waits for its handlers.
void StopServer(std::unique_ptr<grpc::Server>& server);

}  // namespace berth::node
