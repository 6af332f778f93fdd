// SPDX-License-Identifier: Apache-2.0
#include "node/interposer/resource_proxy.h"

#include <unistd.h>
#include <utility>

namespace berth::node {

Upstream::Upstream(std::shared_ptr<grpc::Channel> channel, PluginAddress address, std::int64_t made)
    : channel_(std::move(channel)),
      stub_(v1beta1::DevicePlugin::NewStub(channel_)),
      address_(std::move(address)),
      made_(made) {}

Upstream::~Upstream() {
  stream_context_.TryCancel();
  if (thread_.joinable()) thread_.join();
}

Result<std::shared_ptr<Upstream>> Upstream::Connect(const std::string& socket,
                                                    PluginAddress address, Duration limit) {
  const auto end = After(limit);
  const std::int64_t made = MadeAt(socket);
  auto channel = SocketChannel(socket);
  if (!channel->WaitForConnected(end)) {
    return Fail(Errc::kUnavailable,
                "plugin of " + address.resource + ": no connection to " + socket);
  }
  const std::shared_ptr<Upstream> plugin(
      new Upstream(std::move(channel), std::move(address), made));
  grpc::ClientContext context;
  context.set_deadline(end);
  v1beta1::DevicePluginOptions options;
  // The kubelet asks too, and believes the answer more than the registration.
  if (plugin->stub_->GetDevicePluginOptions(&context, {}, &options).ok()) {
    plugin->address_.options = {options.pre_start_required(),
                                options.get_preferred_allocation_available()};
  }
  return plugin;
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

namespace {

constexpr int kMostThreads = 32;  // callers beyond it are refused

}  // namespace

Result<std::unique_ptr<grpc::Server>> ServeOn(const std::string& path, grpc::Service& service) {
  unlink(path.c_str());  // a symlink too, which gRPC would follow
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota("berth-node");
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) return Fail(Errc::kUnavailable, path + ": want a socket to serve on, got none");
  return server;
}

void StopServer(std::unique_ptr<grpc::Server>& server) {
  if (!server) return;
  server->Shutdown(After(Duration::zero()));
  server.reset();
}

}  // namespace berth::node
