// SPDX-License-Identifier: Apache-2.0
#include "node/guard/hand_back.h"

#include <sys/stat.h>

#include <algorithm>
#include <thread>

namespace berth::node {
namespace {

constexpr Duration kKubeletLook =
    std::chrono::milliseconds(12);  // the kubelet answers 100 in a second
constexpr Duration kMostForTheEnd = std::chrono::milliseconds(300);
constexpr Duration kMostForDevices = std::chrono::milliseconds(400);
constexpr Duration kMostPerCall = std::chrono::seconds(1);
constexpr int kMostTries = 6;

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

HandedBack HandBackOne(const PluginAddress& plugin, PodResources& kubelet,
                       const HandBackOptions& options, Instant end) {
  HandedBack result;
  result.resource = plugin.resource;
  if (!IsSocket(options.folder + "/" + plugin.endpoint)) {
    result.problem = "the plugin's socket is not there";
    return result;
  }
  for (int attempt = 0; attempt < kMostTries; ++attempt) {
    const Status registered =
        RegisterWithKubelet(options.folder + "/" + kKubeletSocket, plugin, kMostPerCall);
    result.problem = registered ? "" : registered.error().message;
    // The kubelet may have it from an earlier time.
    const bool there = !registered && result.problem.find("already connected") != std::string::npos;
    result.registered = result.registered || registered || there;
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
  std::vector<HandedBack> results;
  if (!options.worker_lives) {
    const Instant seen = std::min(end, Instant::clock::now() + kMostForTheEnd);
    for (const PluginAddress& plugin : plugins) {
      WaitForDevices(kubelet, plugin.resource, false, seen);
    }
  }
  for (const PluginAddress& plugin : plugins) {
    results.push_back(HandBackOne(plugin, kubelet, options, end));
  }
  return results;
}

}  // namespace berth::node
