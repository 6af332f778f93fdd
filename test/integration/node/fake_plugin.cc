// SPDX-License-Identifier: Apache-2.0
#include "test/integration/node/fake_plugin.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "node/interposer/local_server.h"

namespace berth::test {

using std::chrono::milliseconds;

FakePlugin::FakePlugin(std::string socket, std::vector<std::string> devices)
    : devices_(std::move(devices)) {
  auto server = node::ServeOn(socket, *this);
  if (server) server_ = *std::move(server);
}

FakePlugin::~FakePlugin() {
  ends_ = true;
  node::StopServer(server_);
}

Status FakePlugin::RegisterAt(const std::string& kubelet_socket, const std::string& resource,
                              const std::string& endpoint) {
  return node::RegisterWithKubelet(kubelet_socket, {resource, endpoint, {true, true}, ""},
                                   std::chrono::seconds(10));
}

void FakePlugin::SetDevices(std::vector<std::string> devices, const std::string& unhealthy) {
  const MutexLock lock(mutex_);
  devices_ = std::move(devices);
  unhealthy_ = unhealthy;
  ++version_;
  changed_.NotifyAll();
}

grpc::Status FakePlugin::GetDevicePluginOptions(grpc::ServerContext* /*call*/,
                                                const v1beta1::Empty* /*request*/,
                                                v1beta1::DevicePluginOptions* response) {
  response->set_pre_start_required(true);
  response->set_get_preferred_allocation_available(true);
  return grpc::Status::OK;
}

grpc::Status FakePlugin::ListAndWatch(grpc::ServerContext* call, const v1beta1::Empty* /*request*/,
                                      grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) {
  int sent = 0;
  const int number = BeginStream();
  while (!call->IsCancelled() && !ends_) {
    v1beta1::ListAndWatchResponse list;
    {
      const MutexLock lock(mutex_);
      if (sent == version_) {
        changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + milliseconds(20));
      }
      if (sent == version_ || (sent > 0 && tells_one_stream && number != *live_.rbegin())) {
        continue;
      }
      sent = version_;
      for (const std::string& id : devices_) {
        v1beta1::Device& device = *list.add_devices();
        device.set_id(id);
        device.set_health(id == unhealthy_ ? "Unhealthy" : "Healthy");
        device.mutable_topology()->add_nodes()->set_id(1);
      }
    }
    writer->Write(list);
  }
  const MutexLock lock(mutex_);
  live_.erase(number);
  return grpc::Status::OK;
}

int FakePlugin::BeginStream() {
  const MutexLock lock(mutex_);
  live_.insert(++streams_);
  return streams_;
}

grpc::Status FakePlugin::GetPreferredAllocation(grpc::ServerContext* call,
                                                const v1beta1::PreferredAllocationRequest* request,
                                                v1beta1::PreferredAllocationResponse* response) {
  ++preferences;
  while (hangs_in_preference && !call->IsCancelled() && !ends_) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  for (const auto& container : request->container_requests()) {
    std::vector<std::string> ids(container.available_deviceids().begin(),
                                 container.available_deviceids().end());
    std::ranges::sort(ids, std::greater<>());
    ids.resize(static_cast<std::size_t>(container.allocation_size()));
    if (lies_in_preference) ids.assign(ids.size(), "GPU-of-nobody");
    response->add_container_responses()->mutable_deviceids()->Assign(ids.begin(), ids.end());
  }
  return grpc::Status::OK;
}

grpc::Status FakePlugin::Allocate(grpc::ServerContext* /*call*/,
                                  const v1beta1::AllocateRequest* /*request*/,
                                  v1beta1::AllocateResponse* response) {
  ++allocations;
  if (fails_in_allocate) return {grpc::StatusCode::INTERNAL, "no such GPU"};
  // A field that this build does not know (1, of length 2): it is to pass through.
  response->ParseFromString(std::string("\x0a\x02\x0a\x00", 4));
  return grpc::Status::OK;
}

grpc::Status FakePlugin::PreStartContainer(grpc::ServerContext* /*call*/,
                                           const v1beta1::PreStartContainerRequest* /*request*/,
                                           v1beta1::PreStartContainerResponse* /*response*/) {
  ++starts;
  return grpc::Status::OK;
}

}  // namespace berth::test
