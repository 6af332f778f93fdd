// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/registrar.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include <sys/stat.h>

#include "node/proto/deviceplugin.grpc.pb.h"
#include "node/proto/podresources.grpc.pb.h"

namespace berth::node {

Status RegisterWithKubelet(const std::string& kubelet_socket, const PluginAddress& plugin,
                           Duration limit) {
  const auto stub = v1beta1::Registration::NewStub(SocketChannel(kubelet_socket));
  v1beta1::RegisterRequest request;
  request.set_version(kPluginVersion);
  request.set_endpoint(plugin.endpoint);
  request.set_resource_name(plugin.resource);
  request.mutable_options()->set_pre_start_required(plugin.options.pre_start);
  request.mutable_options()->set_get_preferred_allocation_available(
      plugin.options.preferred_allocation);
  grpc::ClientContext context;
  context.set_deadline(After(limit));
  v1beta1::Empty nothing;
  const grpc::Status status = stub->Register(&context, request, &nothing);
  if (!status.ok()) return tl::unexpected(CallFailed("Register", status));
  return {};
}

namespace {

constexpr std::size_t kMostTextBytes = 300;

}  // namespace

std::shared_ptr<grpc::Channel> SocketChannel(const std::string& path) {
  grpc::ChannelArguments arguments;
  // Channels of one path share a connection otherwise, and the pause after one that failed.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(kMostMessageBytes);
  return grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
}

std::chrono::system_clock::time_point After(Duration limit) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(limit);
}

Error CallFailed(const std::string& call, const grpc::Status& status) {
  const std::string text = status.error_message();
  Errc code = Errc::kUnavailable;
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) code = Errc::kDeadline;
  if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT) code = Errc::kInvalidArgument;
  return {code, call + ": " + text.substr(0, std::min(text.size(), kMostTextBytes))};
}

namespace {

namespace fs = std::filesystem;

constexpr const char* kLinks = "berth/run/";  // from the kubelet's folder
constexpr const char* kLinkPrefix = "back-";

// What a registration lasts as long as: "1795430000000000001-1795430000000000002"; "" = there is
// none of them.
std::string SocketsNow(const std::string& folder, const PluginAddress& plugin) {
  const std::int64_t plugins = MadeAt(folder + "/" + plugin.endpoint);
  const std::int64_t kubelets = MadeAt(folder + "/" + kKubeletSocket);
  if (plugins == 0 || kubelets == 0) return "";
  return std::to_string(plugins) + "-" + std::to_string(kubelets);
}

// The plugin under a name that it never had; under its own where no link can be made.
PluginAddress Renamed(PluginAddress plugin, const std::string& folder) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::string name = kLinks + (kLinkPrefix + std::to_string(now.count())) + ".sock";
  std::error_code code;
  fs::create_symlink("../../" + plugin.endpoint, folder + "/" + name, code);
  if (!code) plugin.endpoint = name;
  return plugin;
}

}  // namespace

std::int64_t MadeAt(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return 0;
  return static_cast<std::int64_t>(found.st_ctim.tv_sec) * 1'000'000'000 + found.st_ctim.tv_nsec;
}

bool IsDirect(const std::string& folder, const PluginAddress& plugin) {
  return !plugin.direct.empty() && plugin.direct == SocketsNow(folder, plugin);
}

Status RegisterDirectly(const std::string& folder, PluginAddress& plugin, Duration limit) {
  const std::string sockets = SocketsNow(folder, plugin);
  if (sockets.empty()) return Fail(Errc::kUnavailable, plugin.endpoint + ": no such socket");
  BERTH_TRY_STATUS(
      RegisterWithKubelet(folder + "/" + kKubeletSocket, Renamed(plugin, folder), limit));
  plugin.direct = sockets;
  return {};
}

void RemoveDirectLinks(const std::string& folder) {
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder + "/" + kLinks, code)) {
    const bool ours = entry.path().filename().string().starts_with(kLinkPrefix);
    std::error_code ignored;
    if (ours && entry.is_symlink(ignored)) fs::remove(entry.path(), ignored);
  }
}

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
