// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/pod_resources.h"

#include <thread>

#include "node/kubelet/registrar.h"
#include "node/proto/podresources.grpc.pb.h"

namespace berth::node {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(10);

// The kubelet answers 100 calls in a second, of all who ask together, and refuses the others.
template <class Send>
grpc::Status Patiently(Duration limit, Send send) {
  const auto end = After(limit);
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(end);
    const grpc::Status status = send(&context);
    const bool again =
        status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && After(kPause) < end;
    if (!again) return status;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

KubeletPodResources::KubeletPodResources(const std::string& socket)
    : channel_(SocketChannel(socket)) {}

Result<std::vector<ListedPod>> KubeletPodResources::List(Duration limit) {
  v1::ListPodResourcesResponse response;
  const auto stub = v1::PodResourcesLister::NewStub(channel_);
  const grpc::Status status = Patiently(
      limit, [&](grpc::ClientContext* context) { return stub->List(context, {}, &response); });
  if (!status.ok()) return tl::unexpected(CallFailed("PodResources.List", status));
  std::vector<ListedPod> pods;
  for (const v1::PodResources& pod : response.pod_resources()) {
    ListedPod& listed = pods.emplace_back(ListedPod{pod.namespace_(), pod.name(), {}});
    for (const v1::ContainerResources& container : pod.containers()) {
      ListedContainer& added =
          listed.containers.emplace_back(ListedContainer{container.name(), {}});
      for (const v1::ContainerDevices& devices : container.devices()) {
        std::vector<std::string>& ids = added.devices[devices.resource_name()];
        ids.insert(ids.end(), devices.device_ids().begin(), devices.device_ids().end());
      }
    }
  }
  return pods;
}

Result<DevicesByResource> KubeletPodResources::Allocatable(Duration limit) {
  v1::AllocatableResourcesResponse response;
  const auto stub = v1::PodResourcesLister::NewStub(channel_);
  const grpc::Status status = Patiently(limit, [&](grpc::ClientContext* context) {
    return stub->GetAllocatableResources(context, {}, &response);
  });
  if (!status.ok()) return tl::unexpected(CallFailed("GetAllocatableResources", status));
  DevicesByResource healthy;
  for (const v1::ContainerDevices& devices : response.devices()) {
    std::vector<std::string>& ids = healthy[devices.resource_name()];
    ids.insert(ids.end(), devices.device_ids().begin(), devices.device_ids().end());
  }
  return healthy;
}

}  // namespace berth::node
