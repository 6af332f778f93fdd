// SPDX-License-Identifier: Apache-2.0
#include "node/guard/hand_back.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "node/kubelet/registrar.h"

namespace berth::node {
namespace {

constexpr Duration kKubeletLook =
    std::chrono::milliseconds(12);  // the kubelet answers 100 in a second
constexpr Duration kMostForTheEnd = std::chrono::milliseconds(300);
constexpr Duration kMostForDevices = std::chrono::milliseconds(400);
constexpr Duration kMostPerCall = std::chrono::seconds(1);
constexpr Duration kEndIsSeen = std::chrono::milliseconds(60);  // of the worker, by the kubelet
constexpr int kMostTries = 6;

// Waits until the kubelet's number of devices is 0, or is not. The number; 0 where it does not say.
std::size_t WaitForDevices(PodResources& kubelet, const std::string& resource, bool some,
                           Instant until) {
  while (true) {
    const auto healthy = kubelet.Allocatable(kMostPerCall);
    std::size_t devices = 0;
    if (healthy) {
      const auto found = healthy->find(resource);
      devices = found == healthy->end() ? 0 : found->second.size();
      if ((devices > 0) == some) return devices;
    }
    if (Instant::clock::now() >= until) return devices;
    std::this_thread::sleep_for(kKubeletLook);
  }
}

HandedBack HandBackOne(const PluginAddress& plugin, PodResources& kubelet,
                       const HandBackOptions& options, Instant end) {
  HandedBack result;
  result.plugin = plugin;
  if (MadeAt(options.folder + "/" + plugin.endpoint) == 0) {
    result.problem = "the plugin's socket is not there";
    return result;
  }
  for (int attempt = 0; attempt < kMostTries; ++attempt) {
    const Status registered = RegisterDirectly(options.folder, result.plugin, kMostPerCall);
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
  RemoveDirectLinks(options.folder);
  if (options.when == HandBackWhen::kWorkerGone) {
    const Instant seen = std::min(end, Instant::clock::now() + kMostForTheEnd);
    for (const PluginAddress& plugin : plugins) {
      WaitForDevices(kubelet, plugin.resource, false, seen);
    }
  }
  if (options.when == HandBackWhen::kLastLook) std::this_thread::sleep_for(kEndIsSeen);
  std::vector<HandedBack> results;
  for (const PluginAddress& plugin : plugins) {
    const bool may_have =
        options.when == HandBackWhen::kLastLook || IsDirect(options.folder, plugin);
    const std::size_t devices =
        may_have ? WaitForDevices(kubelet, plugin.resource, true, Instant::clock::now()) : 0;
    results.push_back(devices > 0 ? HandedBack{plugin, true, devices, ""}
                                  : HandBackOne(plugin, kubelet, options, end));
  }
  return results;
}

}  // namespace berth::node
