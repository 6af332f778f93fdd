// SPDX-License-Identifier: Apache-2.0
//
// Upstream: the connection to one device plugin, and its list of devices as it changes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <grpcpp/grpcpp.h>

#include "base/clock.h"
#include "base/result.h"
#include "node/kubelet/registrar.h"
#include "node/proto/deviceplugin.grpc.pb.h"

namespace berth::node {

class Upstream {
 public:
  using OnList = std::function<void(const v1beta1::ListAndWatchResponse& list)>;
  using OnEnd = std::function<void()>;

  // Connects to the plugin at `socket`. Error: kUnavailable.
  static Result<std::shared_ptr<Upstream>> Connect(const std::string& socket, PluginAddress address,
                                                   Duration limit);
  // Ends the stream; waits for a callback that runs.
  ~Upstream();

  // Begins to read the list, on a thread of its own. Once. on_end comes once, last.
  void Watch(OnList on_list, OnEnd on_end);

  [[nodiscard]] const PluginAddress& address() const { return address_; }
  // When its socket was made (MadeAt), before we connected.
  [[nodiscard]] std::int64_t made() const { return made_; }
  // Any thread.
  [[nodiscard]] v1beta1::DevicePlugin::Stub& stub() const { return *stub_; }

 private:
  Upstream(std::shared_ptr<grpc::Channel> channel, PluginAddress address, std::int64_t made);

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
  PluginAddress address_;
  const std::int64_t made_;
  grpc::ClientContext stream_context_;
  std::thread thread_;
};

// A small gRPC server on a socket of this machine.

// Replaces what is at the path. Error: kUnavailable.
Result<std::unique_ptr<grpc::Server>> ServeOn(const std::string& path, grpc::Service& service);

// Breaks what is under way off and waits for its handlers.
void StopServer(std::unique_ptr<grpc::Server>& server);

}  // namespace berth::node
