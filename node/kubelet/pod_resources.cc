// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/pod_resources.h"

#include "node/kubelet/socket_channel.h"
#include "node/proto/podresources.grpc.pb.h"

namespace berth::node {

KubeletPodResources::KubeletPodResources(const std::string& socket)
    : channel_(SocketChannel(socket)) {}

Result<std::vector<ListedPod>> KubeletPodResources::List(Duration limit) {
  grpc::ClientContext context;
  context.set_deadline(After(limit));
  v1::ListPodResourcesResponse response;
  const grpc::Status status =
      v1::PodResourcesLister::NewStub(channel_)->List(&context, {}, &response);
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

Result<std::map<std::string, std::size_t>> KubeletPodResources::Allocatable(Duration limit) {
  grpc::ClientContext context;
  context.set_deadline(After(limit));
  v1::AllocatableResourcesResponse response;
  const grpc::Status status =
      v1::PodResourcesLister::NewStub(channel_)->GetAllocatableResources(&context, {}, &response);
  if (!status.ok()) return tl::unexpected(CallFailed("GetAllocatableResources", status));
  std::map<std::string, std::size_t> numbers;
  for (const v1::ContainerDevices& devices : response.devices()) {
    numbers[devices.resource_name()] += static_cast<std::size_t>(devices.device_ids_size());
  }
  return numbers;
}

}  // namespace berth::node
