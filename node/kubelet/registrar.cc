// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/registrar.h"

#include "node/kubelet/socket_channel.h"
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

}  // namespace berth::node
