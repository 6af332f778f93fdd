// SPDX-License-Identifier: Apache-2.0
//
// gRPC over the sockets of this machine.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace berth::node {

inline constexpr int kMostMessageBytes = 16 << 20;  // what a peer may send at once

// Connects when it is used, and again after at most half a second when it broke.
std::shared_ptr<grpc::Channel> SocketChannel(const std::string& path);

// From now; for ClientContext::set_deadline.
std::chrono::system_clock::time_point After(Duration limit);

// "Register: deadline exceeded: ...", cut to a bounded length.
Error CallFailed(const std::string& call, const grpc::Status& status);

}  // namespace berth::node
