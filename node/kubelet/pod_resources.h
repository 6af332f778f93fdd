// SPDX-License-Identifier: Apache-2.0
//
// PodResources: what the kubelet itself says of pods and devices, by its local socket.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace grpc {
class Channel;
}

namespace berth::node {

// Devices by resource, as the plugin names them, in the kubelet's order.
using DevicesByResource = std::map<std::string, std::vector<std::string>>;

struct ListedContainer {
  std::string name;
  DevicesByResource devices;
};

// Of one name there may be two: the pod that ends, and its successor. Init containers are not
// listed, but those that restart (sidecars).
struct ListedPod {
  std::string namespace_name;
  std::string name;
  std::vector<ListedContainer> containers;
};

// Any thread may call it.
class PodResources {
 public:
  virtual ~PodResources() = default;

  // The pods that the kubelet has admitted or is about to admit. Right after its start the list may
  // be empty. Error: kUnavailable, kDeadline.
  virtual Result<std::vector<ListedPod>> List(Duration limit) = 0;

  // By resource the healthy devices, in use or not.
  virtual Result<DevicesByResource> Allocatable(Duration limit) = 0;
};

class KubeletPodResources final : public PodResources {
 public:
  explicit KubeletPodResources(const std::string& socket);

  Result<std::vector<ListedPod>> List(Duration limit) override;
  Result<DevicesByResource> Allocatable(Duration limit) override;

 private:
  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace berth::node
