// SPDX-License-Identifier: Apache-2.0
#include "node/interposer/upstream.h"

#include <utility>

#include "node/kubelet/socket_channel.h"

namespace berth::node {

Upstream::Upstream(std::shared_ptr<grpc::Channel> channel, PluginAddress address)
    : channel_(std::move(channel)),
      stub_(v1beta1::DevicePlugin::NewStub(channel_)),
      address_(std::move(address)) {}

Upstream::~Upstream() {
  stream_context_.TryCancel();
  if (thread_.joinable()) thread_.join();
}

Result<std::shared_ptr<Upstream>> Upstream::Connect(const std::string& socket,
                                                    PluginAddress address, Duration limit) {
  const auto end = After(limit);
  auto channel = SocketChannel(socket);
  if (!channel->WaitForConnected(end)) {
    return Fail(Errc::kUnavailable,
                "plugin of " + address.resource + ": no connection to " + socket);
  }
  const std::shared_ptr<Upstream> made(new Upstream(std::move(channel), std::move(address)));
  grpc::ClientContext context;
  context.set_deadline(end);
  v1beta1::DevicePluginOptions options;
  // The kubelet asks too, and believes the answer more than the registration.
  if (made->stub_->GetDevicePluginOptions(&context, {}, &options).ok()) {
    made->address_.options = {options.pre_start_required(),
                              options.get_preferred_allocation_available()};
  }
  return made;
}

void Upstream::Watch(OnList on_list, OnEnd on_end) {
  thread_ = std::thread([this, on_list = std::move(on_list), on_end = std::move(on_end)] {
    const auto stream = stub_->ListAndWatch(&stream_context_, {});
    v1beta1::ListAndWatchResponse list;
    while (stream->Read(&list)) on_list(list);
    stream->Finish();
    on_end();
  });
}

}  // namespace berth::node
