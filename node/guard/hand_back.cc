// SPDX-License-Identifier: Apache-2.0
#include "node/guard/hand_back.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

namespace berth::node {
namespace {

namespace fs = std::filesystem;

constexpr Duration kKubeletLook =
    std::chrono::milliseconds(12);  // the kubelet answers 100 in a second
constexpr Duration kMostForTheEnd = std::chrono::milliseconds(300);
constexpr Duration kMostForDevices = std::chrono::milliseconds(400);
constexpr Duration kMostPerCall = std::chrono::seconds(1);
constexpr Duration kEndIsSeen = std::chrono::milliseconds(60);  // of the worker, by the kubelet
constexpr int kMostTries = 6;
constexpr const char* kLinks = "berth/run/";  // from the kubelet's folder
constexpr const char* kLinkPrefix = "back-";

bool IsSocket(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode);
}

// Waits until the kubelet's number of devices is 0, or is not. The number; 0 where it does not say.
std::size_t WaitForDevices(PodResources& kubelet, const std::string& resource, bool some,
                           Instant until) {
  while (true) {
    const auto numbers = kubelet.Allocatable(kMostPerCall);
    std::size_t devices = 0;
    if (numbers) {
      const auto found = numbers->find(resource);
      devices = found == numbers->end() ? 0 : found->second;
      if ((devices > 0) == some) return devices;
    }
    if (Instant::clock::now() >= until) return devices;
    std::this_thread::sleep_for(kKubeletLook);
  }
}

// Those of earlier times. The kubelet needs one until it has connected.
void RemoveLinks(const std::string& folder) {
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder + "/" + kLinks, code)) {
    const bool ours = entry.path().filename().string().starts_with(kLinkPrefix);
    std::error_code ignored;
    if (ours && entry.is_symlink(ignored)) fs::remove(entry.path(), ignored);
  }
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

HandedBack HandBackOne(const PluginAddress& plugin, PodResources& kubelet,
                       const HandBackOptions& options, Instant end) {
  HandedBack result;
  result.resource = plugin.resource;
  if (!IsSocket(options.folder + "/" + plugin.endpoint)) {
    result.problem = "the plugin's socket is not there";
    return result;
  }
  for (int attempt = 0; attempt < kMostTries; ++attempt) {
    const Status registered = RegisterWithKubelet(options.folder + "/" + kKubeletSocket,
                                                  Renamed(plugin, options.folder), kMostPerCall);
    result.problem = registered ? "" : registered.error().message;
    result.registered = result.registered || registered;
    const Instant limit = std::min(end, Instant::clock::now() + kMostForDevices);
    result.devices = WaitForDevices(kubelet, plugin.resource, true, limit);
    if ((result.registered && result.devices > 0) || Instant::clock::now() >= end) break;
  }
  if (result.registered && result.devices > 0) result.problem.clear();
  return result;
}

}  // namespace

std::vector<HandedBack> HandBack(const std::vector<PluginAddress>& plugins, PodResources& kubelet,
                                 const HandBackOptions& options) {
  const Instant end = Instant::clock::now() + options.limit;
  RemoveLinks(options.folder);
  if (options.when == HandBackWhen::kWorkerGone) {
    const Instant seen = std::min(end, Instant::clock::now() + kMostForTheEnd);
    for (const PluginAddress& plugin : plugins) {
      WaitForDevices(kubelet, plugin.resource, false, seen);
    }
  }
  const bool last_look = options.when == HandBackWhen::kLastLook;
  if (last_look) std::this_thread::sleep_for(kEndIsSeen);
  std::vector<HandedBack> results;
  for (const PluginAddress& plugin : plugins) {
    const std::size_t devices =
        last_look ? WaitForDevices(kubelet, plugin.resource, true, Instant::clock::now()) : 0;
    results.push_back(devices > 0 ? HandedBack{plugin.resource, true, devices, ""}
                                  : HandBackOne(plugin, kubelet, options, end));
  }
  return results;
}

}  // namespace berth::node
