// SPDX-License-Identifier: Apache-2.0
#include "node/interposer/local_server.h"

#include <unistd.h>

#include "node/kubelet/socket_channel.h"

namespace berth::node {
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
