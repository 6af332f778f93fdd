// SPDX-License-Identifier: Apache-2.0
//
// FakePlugin: a device plugin with devices that do not exist. It prefers the last devices by name.
//
// It tells changes as NVIDIA's plugin does: each caller of ListAndWatch has a reader, one reader
// hears of each change, in the order in which they began to wait, and one whose caller has gone
// learns that by the change only, which is lost then.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
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
  // From now on it serves and registers anew whenever somebody makes that socket anew. It forgets
  // which device is unhealthy then.
  void Follow(const std::string& kubelet_socket, const std::string& resource,
              const std::string& endpoint);
  static constexpr const char* kAll = "*";  // as `unhealthy`
  void SetDevices(std::vector<std::string> devices, const std::string& unhealthy = "");
  // Whether so many readers wait, with a caller or without, and each change was told.
  [[nodiscard]] bool AllWait(std::size_t readers) BERTH_EXCLUDES(mutex_);

  std::atomic<bool> hangs_in_preference = false;
  std::atomic<bool> lies_in_preference = false;
  std::atomic<bool> fails_in_allocate = false;
  std::atomic<bool> is_slow_to_start = false;   // where it starts anew
  std::atomic<bool> stops_in_allocate = false;  // it starts anew while it is asked, once
  std::atomic<int> preferences = 0, allocations = 0, starts = 0, given_up = 0, restarts = 0;

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

  void Serve();
  void Stop() BERTH_EXCLUDES(mutex_);
  v1beta1::ListAndWatchResponse List() BERTH_REQUIRES(mutex_);

  const std::string socket_;
  std::atomic<bool> ends_ = false;  // the server, as when it starts anew
  std::atomic<bool> is_over_ = false;
  std::thread follows_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> devices_ BERTH_GUARDED_BY(mutex_);
  std::string unhealthy_ BERTH_GUARDED_BY(mutex_);
  int untold_ BERTH_GUARDED_BY(mutex_) = 0;                   // changes
  std::deque<const void*> readers_ BERTH_GUARDED_BY(mutex_);  // that wait; the next one first
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace berth::test
