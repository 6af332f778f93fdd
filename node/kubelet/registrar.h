// SPDX-License-Identifier: Apache-2.0
//
// Registering a device plugin with the kubelet.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "base/clock.h"
#include "base/result.h"

namespace berth::node {

struct PluginOptions {
  bool pre_start = false;
  bool preferred_allocation = false;
  friend bool operator==(const PluginOptions&, const PluginOptions&) = default;
};

// A plugin as the kubelet finds it. `endpoint` is its socket, as a path from the folder of the
// kubelet's socket: "nvidia-gpu.sock", "berth/nvidia-gpu.sock".
struct PluginAddress {
  std::string resource;  // "nvidia.com/gpu"
  std::string endpoint;
  PluginOptions options;
  // With which sockets the kubelet had it directly; "" = never.
  std::string direct;
  // The devices that it called unhealthy and has forgotten, and whose socket it was:
  // "179543...:g1,g2" (resource_proxy.h); "" = none.
  std::string sick{};
  friend bool operator==(const PluginAddress&, const PluginAddress&) = default;
};

// The only version there is.
inline constexpr const char* kPluginVersion = "v1beta1";
inline constexpr const char* kKubeletSocket = "kubelet.sock";

// Blocks until the kubelet has connected to the endpoint. Error: kUnavailable, kDeadline; where
// they come late the kubelet may have registered it all the same.
Status RegisterWithKubelet(const std::string& kubelet_socket, const PluginAddress& plugin,
                           Duration limit);

// gRPC over the sockets of this machine.
inline constexpr int kMostMessageBytes = 16 << 20;  // what a peer may send at once

// Connects when it is used, and again after at most half a second when it broke.
std::shared_ptr<grpc::Channel> SocketChannel(const std::string& path);

// From now; for ClientContext::set_deadline.
std::chrono::system_clock::time_point After(Duration limit);

// "Register: deadline exceeded: ...", cut to a bounded length.
Error CallFailed(const std::string& call, const grpc::Status& status);

// Registering a plugin with the kubelet under its own socket, instead of the agent or beside it.
//
// Each registration is under a new name, a link DIR/berth/run/back-*.sock. The kubelet of 1.37
// knows plugins by the path of their socket: one that registers twice under the same path is
// refused, and the kubelet misses its end from then on.

// When the socket was made, in nanoseconds since 1970; 0: there is none.
std::int64_t MadeAt(const std::string& path);

// Whether the kubelet has the plugin directly: a registration lasts as long as the sockets of both.
bool IsDirect(const std::string& folder, const PluginAddress& plugin);

// Registers the plugin, and notes it in plugin.direct. `folder` is the kubelet's. Error as of
// RegisterWithKubelet.
Status RegisterDirectly(const std::string& folder, PluginAddress& plugin, Duration limit);

// Removes the links of earlier registrations. The kubelet needs one until it has connected.
void RemoveDirectLinks(const std::string& folder);

// PodResources: what the kubelet itself says of pods and devices, by its local socket.

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

// The file in which the worker keeps the plugins that it stands in for, so that they can be handed
// back to the kubelet, and taken over again, without it. One line each:
//
//   nvidia.com/gpu nvidia-gpu.sock pre-start=0 preferred=1 direct=1795430000000000001-179543...
//
// And one more for PluginAddress::sick, which an older agent leaves out:
//
//   sick nvidia.com/gpu 1795430000000000001:GPU-1,GPU-2

inline constexpr std::size_t kMostResources = 64;  // that one agent stands in for

// A line that cannot be used is left out, and what is beyond kMostResources.
std::vector<PluginAddress> ParsePlugins(std::string_view text);
std::string PluginsText(const std::vector<PluginAddress>& plugins);

// Empty where there is no file.
std::vector<PluginAddress> ReadPlugins(const std::string& path);

// Whole or not at all. Error: kUnavailable with the path and the reason.
Status WritePlugins(const std::string& path, const std::vector<PluginAddress>& plugins);

// Names that plugins send: they become paths of sockets and keys of annotations.

// Error: kInvalidArgument "resource_name: want a domain, a slash and a name, got \"gpu\"".
Status CheckResourceName(std::string_view name);

// Of a socket beside the kubelet's. Error: kInvalidArgument for a path, for a name that is too long
// and for those that this agent and the kubelet use.
Status CheckEndpoint(std::string_view name);

// "nvidia.com/gpu" -> "berth-nvidia-com-gpu.sock".
// With a number: "berth-nvidia-com-gpu-2.sock".
std::string EndpointFor(std::string_view resource, unsigned number = 0);

// "GPU-1::3", the fourth replica of a GPU that is shared by time -> "GPU-1".
std::string_view WithoutReplica(std::string_view device);

}  // namespace berth::node
