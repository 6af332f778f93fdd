// SPDX-License-Identifier: Apache-2.0
//
// FakePlugin: a device plugin with devices that do not exist. It prefers the last devices by name.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "node/kubelet/registrar.h"
#include "node/proto/deviceplugin.grpc.pb.h"

namespace berth::test {

class FakePlugin final : private v1beta1::DevicePlugin::Service {
 public:
  // Serves on the socket.
  FakePlugin(std::string socket, std::vector<std::string> devices);
  ~FakePlugin() override;

  // Registers at that socket, as `endpoint`.
  Status RegisterAt(const std::string& kubelet_socket, const std::string& resource,
                    const std::string& endpoint);
  void SetDevices(std::vector<std::string> devices, const std::string& unhealthy = "");

  std::atomic<bool> hangs_in_preference = false;
  std::atomic<bool> lies_in_preference = false;
  std::atomic<bool> fails_in_allocate = false;
  // As NVIDIA's: of several streams only one hears of a change, here the newest.
  std::atomic<bool> tells_one_stream = false;
  std::atomic<int> preferences = 0, allocations = 0, starts = 0;

 private:
  grpc::Status GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                      v1beta1::DevicePluginOptions* response) override;
  grpc::Status ListAndWatch(grpc::ServerContext* call, const v1beta1::Empty*,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override;
  grpc::Status GetPreferredAllocation(grpc::ServerContext* call,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* response) override;
  grpc::Status Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest*,
                        v1beta1::AllocateResponse*) override;
  grpc::Status PreStartContainer(grpc::ServerContext*, const v1beta1::PreStartContainerRequest*,
                                 v1beta1::PreStartContainerResponse*) override;

  int BeginStream() BERTH_EXCLUDES(mutex_);  // returns its number

  std::atomic<bool> ends_ = false;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> devices_ BERTH_GUARDED_BY(mutex_);
  std::string unhealthy_ BERTH_GUARDED_BY(mutex_);
  int version_ BERTH_GUARDED_BY(mutex_) = 1;
  int streams_ BERTH_GUARDED_BY(mutex_) = 0;  // so far
  std::set<int> live_ BERTH_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace berth::test
