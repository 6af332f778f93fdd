// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/registrar.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/proto/deviceplugin.grpc.pb.h"
#include "node/proto/podresources.grpc.pb.h"

namespace berth::node {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{512} << 10;
constexpr std::string_view kDirect = "direct=";
constexpr std::string_view kSick = "sick ";

// The plugin's own socket, in the kubelet's folder or in ours.
bool IsEndpointPath(std::string_view endpoint) {
  constexpr std::string_view kOurFolder = "berth/";
  if (endpoint.starts_with(kOurFolder)) endpoint.remove_prefix(kOurFolder.size());
  return CheckEndpoint(endpoint).has_value();
}

std::optional<PluginAddress> ParsePlugin(const std::string& line) {
  std::istringstream words(line);
  PluginAddress plugin;
  std::string pre_start, preferred, direct, more;
  words >> plugin.resource >> plugin.endpoint >> pre_start >> preferred >> direct;
  if (words >> more || (!direct.empty() && !direct.starts_with(kDirect))) return std::nullopt;
  if (!direct.empty()) plugin.direct = direct.substr(kDirect.size());
  if (!CheckResourceName(plugin.resource) || !IsEndpointPath(plugin.endpoint)) return std::nullopt;
  plugin.options.pre_start = pre_start == "pre-start=1";
  plugin.options.preferred_allocation = preferred == "preferred=1";
  return plugin;
}

Error NotWritten(const std::string& path) {
  return {Errc::kUnavailable, path + ": " + std::generic_category().message(errno)};
}

constexpr std::size_t kMostDomainBytes = 253;
constexpr std::size_t kMostNameBytes = 63;
constexpr std::size_t kMostEndpointBytes = 63;  // a socket's path has at most 107 in all

bool IsLetterOrDigit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool IsName(std::string_view text, std::size_t most, std::string_view between) {
  return !text.empty() && text.size() <= most && IsLetterOrDigit(text.front()) &&
         IsLetterOrDigit(text.back()) && std::ranges::all_of(text, [between](char c) {
           return IsLetterOrDigit(c) || between.find(c) != std::string_view::npos;
         });
}

std::string Quoted(std::string_view text) {
  constexpr std::size_t kMost = 100;
  return "\"" + std::string(text.substr(0, kMost)) + (text.size() > kMost ? "..." : "") + "\"";
}

constexpr std::size_t kMostTextBytes = 300;

namespace fs = std::filesystem;

constexpr const char* kLinks = "berth/run/";  // from the kubelet's folder
constexpr const char* kLinkPrefix = "back-";

// As long as this a registration lasts: "1795430000000000001-1795430000000000002"; "" = none.
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

std::vector<PluginAddress> ParsePlugins(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::vector<PluginAddress> plugins;
  for (std::string line; std::getline(lines, line) && plugins.size() < kMostResources;) {
    if (!plugins.empty() && line.starts_with(kSick)) {
      const std::string of = std::string(kSick) + plugins.back().resource + " ";
      if (line.starts_with(of)) plugins.back().sick = line.substr(of.size());
    } else if (std::optional<PluginAddress> plugin = ParsePlugin(line)) {
      plugins.push_back(*std::move(plugin));
    }
  }
  return plugins;
}

std::string PluginsText(const std::vector<PluginAddress>& plugins) {
  std::string text;
  for (const PluginAddress& plugin : plugins) {
    text += plugin.resource + " " + plugin.endpoint +
            " pre-start=" + (plugin.options.pre_start ? "1" : "0") +
            " preferred=" + (plugin.options.preferred_allocation ? "1" : "0");
    if (!plugin.direct.empty()) text += " " + std::string(kDirect) + plugin.direct;
    text += "\n";
    if (!plugin.sick.empty()) {
      text += std::string(kSick) + plugin.resource + " " + plugin.sick + "\n";
    }
  }
  return text;
}

std::vector<PluginAddress> ReadPlugins(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostFileBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return ParsePlugins(text);
}

Status WritePlugins(const std::string& path, const std::vector<PluginAddress>& plugins) {
  const std::string next = path + ".new";
  const std::string text = PluginsText(plugins);
  const int file = open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return tl::unexpected(NotWritten(next));
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  if (!written) return tl::unexpected(NotWritten(next));
  if (std::rename(next.c_str(), path.c_str()) != 0) return tl::unexpected(NotWritten(path));
  return {};
}

Status CheckResourceName(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos || !IsName(name.substr(0, slash), kMostDomainBytes, "-.") ||
      !IsName(name.substr(slash + 1), kMostNameBytes, "-._")) {
    return Invalid("resource_name: want a domain, a slash and a name, got " + Quoted(name));
  }
  return {};
}

Status CheckEndpoint(std::string_view name) {
  if (!IsName(name, kMostEndpointBytes, "-._")) {
    return Invalid("endpoint: want the name of a socket, at most 63 bytes, got " + Quoted(name));
  }
  if (name == "kubelet.sock" || name.starts_with("berth-")) {
    return Invalid("endpoint: want a name that neither the kubelet nor berth-node uses, got " +
                   Quoted(name));
  }
  return {};
}

std::string EndpointFor(std::string_view resource, unsigned number) {
  std::string name = "berth-" + std::string(resource);
  std::ranges::replace(name, '/', '-');
  std::ranges::replace(name, '.', '-');
  constexpr std::size_t kMost = 56;
  const std::string counted = number == 0 ? "" : "-" + std::to_string(number);
  return name.substr(0, kMost) + counted + ".sock";
}

std::string_view WithoutReplica(std::string_view device) {
  return device.substr(0, device.find("::"));
}

}  // namespace berth::node
