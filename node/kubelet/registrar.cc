// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/registrar.h"

#include <algorithm>

#include "node/proto/deviceplugin.grpc.pb.h"

namespace berth::node {

Status RegisterWithKubelet(const std::string& kubelet_socket, const PluginAddress& plugin,
                           Duration limit) {
  const auto stub = v1beta1::Registration::NewStub(SocketChannel(kubelet_socket));
  v1beta1::RegisterRequest request;
  request.set_version(kPluginVersion);
  request.set_endpoint(plugin.endpoint);
  request.set_resource_name(plugin.resource);
  request.mutable_options()->set_pre_start_required(plugin.options.pre_start);
  request.mutable_options()->set_get_preferred_allocation_available(
      plugin.options.preferred_allocation);
  grpc::ClientContext context;
  context.set_deadline(After(limit));
  v1beta1::Empty nothing;
  const grpc::Status status = stub->Register(&context, request, &nothing);
  if (!status.ok()) return tl::unexpected(CallFailed("Register", status));
  return {};
}

namespace {

constexpr std::size_t kMostTextBytes = 300;

}  // namespace

std::shared_ptr<grpc::Channel> SocketChannel(const std::string& path) {
  grpc::ChannelArguments arguments;
  // Channels of one path share a connection otherwise, and the pause after one that failed.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(kMostMessageBytes);
  return grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
}

std::chrono::system_clock::time_point After(Duration limit) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(limit);
}

Error CallFailed(const std::string& call, const grpc::Status& status) {
  const std::string text = status.error_message();
  Errc code = Errc::kUnavailable;
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) code = Errc::kDeadline;
  if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT) code = Errc::kInvalidArgument;
  return {code, call + ": " + text.substr(0, std::min(text.size(), kMostTextBytes))};
}

}  // namespace berth::node
