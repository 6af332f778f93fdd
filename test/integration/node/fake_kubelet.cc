// SPDX-License-Identifier: Apache-2.0
#include "test/integration/node/fake_kubelet.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "node/interposer/resource_proxy.h"
#include "node/kubelet/registrar.h"

namespace berth::test {

namespace fs = std::filesystem;

struct FakeKubelet::Client {
  std::string resource, endpoint;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub;
  grpc::ClientContext stream;
  bool told = false;  // it has sent a list
};

class FakeKubelet::Registration final : public v1beta1::Registration::Service {
 public:
  explicit Registration(FakeKubelet& kubelet) : kubelet_(kubelet) {}

 private:
  grpc::Status Register(grpc::ServerContext* /*call*/, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* /*response*/) override {
    auto client = std::make_shared<Client>();
    client->resource = request->resource_name();
    client->endpoint = request->endpoint();
    client->channel = node::SocketChannel(kubelet_.folder_ + "/" + request->endpoint());
    if (!client->channel->WaitForConnected(node::After(std::chrono::seconds(2)))) {
      return {grpc::StatusCode::UNAVAILABLE, "no connection"};
    }
    client->stub = v1beta1::DevicePlugin::NewStub(client->channel);
    grpc::ClientContext context;
    v1beta1::DevicePluginOptions options;
    const grpc::Status status = client->stub->GetDevicePluginOptions(&context, {}, &options);
    if (!status.ok()) return status;
    const MutexLock lock(kubelet_.mutex_);
    auto& clients = kubelet_.clients_[client->resource];
    if (!kubelet_.keeps_both) clients.clear();
    clients.push_back(client);
    kubelet_.asked_[client->resource].push_back(client->endpoint);
    ++kubelet_.registrations_[client->resource];
    kubelet_.threads_.emplace_back([this, client] { kubelet_.Follow(client); });
    return grpc::Status::OK;
  }

  FakeKubelet& kubelet_;
};

class FakeKubelet::Pods final : public v1::PodResourcesLister::Service {
 public:
  explicit Pods(FakeKubelet& kubelet) : kubelet_(kubelet) {}

 private:
  grpc::Status List(grpc::ServerContext* /*call*/, const v1::ListPodResourcesRequest* /*request*/,
                    v1::ListPodResourcesResponse* response) override {
    ++kubelet_.lists;
    if (kubelet_.lists_fail) return {grpc::StatusCode::INTERNAL, "no list"};
    const MutexLock lock(kubelet_.mutex_);
    *response = kubelet_.list_;
    return grpc::Status::OK;
  }
  grpc::Status GetAllocatableResources(grpc::ServerContext* /*call*/,
                                       const v1::AllocatableResourcesRequest* /*request*/,
                                       v1::AllocatableResourcesResponse* response) override {
    const MutexLock lock(kubelet_.mutex_);
    for (const auto& [resource, devices] : kubelet_.devices_) {
      for (const v1beta1::Device& device : devices) {
        if (device.health() != "Healthy") continue;
        v1::ContainerDevices& one = *response->add_devices();
        one.set_resource_name(resource);
        one.add_device_ids(device.id());
      }
    }
    return grpc::Status::OK;
  }

  FakeKubelet& kubelet_;
};

FakeKubelet::FakeKubelet(std::string folder) : folder_(std::move(folder)) { Serve(); }

FakeKubelet::~FakeKubelet() {
  {
    const MutexLock lock(mutex_);
    for (const auto& [resource, clients] : clients_) {
      for (const auto& client : clients) client->stream.TryCancel();
    }
  }
  node::StopServer(registration_server_);
  node::StopServer(pods_server_);
  for (std::thread& thread : threads_) thread.join();
}

void FakeKubelet::Serve() {
  fs::create_directories(folder_ + "/pods");
  registration_ = std::make_unique<Registration>(*this);
  pods_ = std::make_unique<Pods>(*this);
  registration_server_ = *node::ServeOn(socket(), *registration_);
  pods_server_ = *node::ServeOn(pod_resources(), *pods_);
}

void FakeKubelet::Restart() {
  std::map<std::string, std::vector<std::shared_ptr<Client>>> all;
  {
    const MutexLock lock(mutex_);
    all = std::exchange(clients_, {});
    devices_.clear();
    registrations_.clear();
  }
  for (const auto& [resource, clients] : all) {
    for (const auto& client : clients) client->stream.TryCancel();
  }
  node::StopServer(registration_server_);
  node::StopServer(pods_server_);
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.is_socket()) fs::remove(entry.path());
  }
  Serve();
}

void FakeKubelet::Follow(const std::shared_ptr<Client>& client) {
  const auto stream = client->stub->ListAndWatch(&client->stream, {});
  v1beta1::ListAndWatchResponse list;
  while (stream->Read(&list)) {
    const MutexLock lock(mutex_);
    devices_[client->resource].assign(list.devices().begin(), list.devices().end());
    client->told = true;
  }
  stream->Finish();
  const MutexLock lock(mutex_);
  const auto found = clients_.find(client->resource);
  if (found == clients_.end()) return;
  if (keeps_both) std::erase(found->second, client);
  if (keeps_both && !found->second.empty()) {
    std::rotate(found->second.begin(), found->second.begin() + 1, found->second.end());
    asked_[client->resource].push_back(found->second.back()->endpoint);
    return;
  }
  for (const auto& other : found->second) {
    if (other != client) other->stream.TryCancel();
  }
  clients_.erase(found);
  for (v1beta1::Device& device : devices_[client->resource]) device.set_health("Unhealthy");
}

void FakeKubelet::AddPod(const std::string& pod, const std::vector<std::string>& containers) {
  const MutexLock lock(mutex_);
  v1::PodResources& added = *list_.add_pod_resources();
  added.set_namespace_("default");
  added.set_name(pod);
  for (const std::string& container : containers) added.add_containers()->set_name(container);
}

void FakeKubelet::RemovePod(const std::string& pod) {
  const MutexLock lock(mutex_);
  auto& pods = *list_.mutable_pod_resources();
  for (int i = 0; i < pods.size(); ++i) {
    if (pods[i].name() != pod) continue;
    for (const auto& container : pods[i].containers()) {
      for (const auto& devices : container.devices()) {
        for (const std::string& id : devices.device_ids()) {
          used_[devices.resource_name()].erase(id);
        }
      }
    }
    pods.DeleteSubrange(i, 1);
    return;
  }
}

Result<std::vector<std::string>> FakeKubelet::Admit(const Ask& ask) {
  std::shared_ptr<Client> client;
  v1beta1::PreferredAllocationRequest question;
  auto& one = *question.add_container_requests();
  one.set_allocation_size(ask.devices);
  one.mutable_must_include_deviceids()->Assign(ask.must.begin(), ask.must.end());
  {
    const MutexLock lock(mutex_);
    const auto found = clients_.find(ask.resource);
    if (found == clients_.end()) return Fail(Errc::kUnavailable, "no plugin");
    client = found->second.back();
    for (const v1beta1::Device& device : devices_[ask.resource]) {
      const bool must = std::ranges::find(ask.must, device.id()) != ask.must.end();
      const bool used = used_[ask.resource].contains(device.id());
      if (must || (device.health() == "Healthy" && !used)) {
        one.add_available_deviceids(device.id());
      }
    }
    if (one.available_deviceids_size() < ask.devices) return Fail(Errc::kConflict, "too few");
  }
  grpc::ClientContext preferring;
  v1beta1::PreferredAllocationResponse preferred;
  grpc::Status status = client->stub->GetPreferredAllocation(&preferring, question, &preferred);
  if (!status.ok()) return tl::unexpected(node::CallFailed("GetPreferredAllocation", status));
  const auto& chosen = preferred.container_responses(0).deviceids();
  std::vector<std::string> ids(chosen.begin(), chosen.end());
  v1beta1::AllocateRequest request;
  request.add_container_requests()->mutable_devices_ids()->Assign(ids.begin(), ids.end());
  v1beta1::AllocateResponse response;
  grpc::ClientContext allocating;
  status = client->stub->Allocate(&allocating, request, &response);
  if (!status.ok()) return tl::unexpected(node::CallFailed("Allocate", status));
  if (response.ByteSizeLong() == 0) return Fail(Errc::kInternal, "the plugin's answer was lost");
  const MutexLock lock(mutex_);
  used_[ask.resource].insert(ids.begin(), ids.end());
  for (auto& pod : *list_.mutable_pod_resources()) {
    if (pod.name() != ask.pod || !ask.listed) continue;
    for (auto& container : *pod.mutable_containers()) {
      if (container.name() != ask.container) continue;
      v1::ContainerDevices& devices = *container.add_devices();
      devices.set_resource_name(ask.resource);
      devices.mutable_device_ids()->Assign(ids.begin(), ids.end());
    }
  }
  return ids;
}

std::size_t FakeKubelet::Allocatable(const std::string& resource) {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count(devices_[resource], "Healthy", &v1beta1::Device::health));
}

std::string FakeKubelet::Endpoint(const std::string& resource) {
  const MutexLock lock(mutex_);
  const auto found = clients_.find(resource);
  return found == clients_.end() ? "" : found->second.back()->endpoint;
}

bool FakeKubelet::IsTold(const std::string& resource) {
  const MutexLock lock(mutex_);
  const auto found = clients_.find(resource);
  return found != clients_.end() && std::ranges::all_of(found->second, &Client::told);
}

bool FakeKubelet::HasNuma(const std::string& resource) {
  const MutexLock lock(mutex_);
  return std::ranges::any_of(devices_[resource], &v1beta1::Device::has_topology);
}

std::vector<std::string> FakeKubelet::Asked(const std::string& resource) {
  const MutexLock lock(mutex_);
  return asked_[resource];
}

int FakeKubelet::Registrations(const std::string& resource) {
  const MutexLock lock(mutex_);
  return registrations_[resource];
}

}  // namespace berth::test
