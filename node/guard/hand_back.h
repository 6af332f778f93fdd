// SPDX-License-Identifier: Apache-2.0
//
// Handing the plugins back: each is registered with the kubelet under its own socket, so that the
// node works as without this agent.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "node/kubelet/pod_resources.h"
#include "node/kubelet/registrar.h"

namespace berth::node {

// What the worker is doing meanwhile.
enum class HandBackWhen {
  kWorkerGone,    // the kubelet may not have seen its end yet
  kWorkerServes,  // and the kubelet keeps both (Kubernetes 1.37)
  kLastLook,      // gone, after a hand-back while it served: only what the kubelet lacks
};

struct HandBackOptions {
  std::string folder;  // the kubelet's, of device plugins
  HandBackWhen when = HandBackWhen::kWorkerGone;
  Duration limit = std::chrono::seconds(5);
};

struct HandedBack {
  PluginAddress plugin;
  bool registered = false;
  std::size_t devices = 0;  // that the kubelet has now; 0 also where it does not say
  std::string problem;
};

// Registers each plugin and looks whether the kubelet has devices of it then; again where it has
// none: the end of the worker's stream may come late, and takes a newer registration with it. One
// that the kubelet has directly already (Kubernetes 1.37) is left as it is.
std::vector<HandedBack> HandBack(const std::vector<PluginAddress>& plugins, PodResources& kubelet,
                                 const HandBackOptions& options);

}  // namespace berth::node
