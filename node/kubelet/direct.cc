// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/direct.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <system_error>

namespace berth::node {
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

}  // namespace berth::node
