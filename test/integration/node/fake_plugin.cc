// SPDX-License-Identifier: Apache-2.0
#include "test/integration/node/fake_plugin.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "node/interposer/resource_proxy.h"

namespace berth::test {

using std::chrono::milliseconds;

FakePlugin::FakePlugin(std::string socket, std::vector<std::string> devices)
    : socket_(std::move(socket)), devices_(std::move(devices)) {
  Serve();
}

FakePlugin::~FakePlugin() {
  is_over_ = true;
  if (follows_.joinable()) follows_.join();
  Stop();
}

void FakePlugin::Serve() {
  ends_ = false;
  auto server = node::ServeOn(socket_, *this);
  if (server) server_ = *std::move(server);
}

void FakePlugin::Stop() {
  ends_ = true;
  {
    const MutexLock lock(mutex_);
    changed_.NotifyAll();
  }
  node::StopServer(server_);
}

void FakePlugin::Follow(const std::string& kubelet_socket, const std::string& resource,
                        const std::string& endpoint) {
  const auto made = [kubelet_socket] {
    struct stat found {};
    const bool there = lstat(kubelet_socket.c_str(), &found) == 0;
    return there ? std::make_pair(found.st_ino, found.st_ctim.tv_nsec)
                 : std::make_pair(ino_t{}, 0L);
  };
  follows_ = std::thread([=, this, last = made()]() mutable {
    for (; !is_over_; std::this_thread::sleep_for(milliseconds(5))) {
      const auto now = made();
      if (now.first == 0 || now == last) continue;
      if (stops_in_allocate && allocations == 0) continue;
      Stop();
      stops_in_allocate = false;
      if (is_slow_to_start) std::this_thread::sleep_for(node::ResourceProxy::kGrace * 3 / 2);
      {
        const MutexLock lock(mutex_);
        unhealthy_.clear();
        untold_ = 0;
      }
      Serve();
      if (RegisterAt(kubelet_socket, resource, endpoint)) last = now;
      ++restarts;
    }
  });
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
  ++untold_;
  changed_.NotifyAll();
}

bool FakePlugin::AllWait(std::size_t readers) {
  const MutexLock lock(mutex_);
  return untold_ == 0 && readers_.size() == readers;
}

v1beta1::ListAndWatchResponse FakePlugin::List() {
  v1beta1::ListAndWatchResponse list;
  for (const std::string& id : devices_) {
    v1beta1::Device& device = *list.add_devices();
    device.set_id(id);
    device.set_health(id == unhealthy_ || unhealthy_ == kAll ? "Unhealthy" : "Healthy");
    device.mutable_topology()->add_nodes()->set_id(1);
  }
  return list;
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
  v1beta1::ListAndWatchResponse list;
  {
    const MutexLock lock(mutex_);
    list = List();
  }
  while (!ends_ && writer->Write(list) && !call->IsCancelled()) {
    const MutexLock lock(mutex_);
    readers_.push_back(call);
    while (!ends_ && (untold_ == 0 || readers_.front() != call)) changed_.Wait(mutex_);
    std::erase(readers_, call);
    if (ends_) break;
    --untold_;
    changed_.NotifyAll();
    list = List();
  }
  return grpc::Status::OK;
}

grpc::Status FakePlugin::GetPreferredAllocation(grpc::ServerContext* call,
                                                const v1beta1::PreferredAllocationRequest* request,
                                                v1beta1::PreferredAllocationResponse* response) {
  ++preferences;
  while (hangs_in_preference && !call->IsCancelled() && !ends_) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  if (call->IsCancelled()) ++given_up;
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
  if (stops_in_allocate) return grpc::Status::CANCELLED;  // as a server does with its calls
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
