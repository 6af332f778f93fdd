// SPDX-License-Identifier: Apache-2.0
//
// What the interposer needs of the rest of the agent.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"

namespace berth::node {

// The kubelet asks which devices a container should get.
struct PreferredQuestion {
  std::string resource;
  std::vector<std::string> available;  // includes must
  std::vector<std::string> must;
  std::size_t size = 0;
  Instant since{};  // when the kubelet began to ask us
};

// The plugin's own preference among these devices; nullopt where it has none or gives no answer.
using AskPlugin = std::function<std::optional<std::vector<std::string>>(
    const std::vector<std::string>& available)>;

// Any thread may call them. None throws.
class DeviceChooser {
 public:
  virtual ~DeviceChooser() = default;
  // The answer: exactly `size` different devices out of `available`, with all of `must`; fewer only
  // where there are fewer. Ends within kMostChoice.
  virtual std::vector<std::string> Choose(const PreferredQuestion& question,
                                          const AskPlugin& ask_plugin) = 0;
  // The kubelet's books may say more now: a container was given these devices.
  virtual void Given(const std::string& resource, const std::vector<std::string>& devices) = 0;
};

inline constexpr Duration kMostChoice = std::chrono::milliseconds(2500);
inline constexpr Duration kMostPluginPreference = std::chrono::seconds(1);

// Who hears of what the interposer sees. The calls return at once.
class InterposerReports {
 public:
  virtual ~InterposerReports() = default;
  virtual void Carries(std::set<std::string> resources) = 0;
  virtual void Unhealthy(const std::string& resource, std::set<std::string> devices) = 0;
  // Whether the plugin's devices say on which NUMA nodes they are, as the kubelet sees them.
  virtual void NumaNodes(const std::string& resource, bool known) = 0;
  virtual void PluginRegistered() = 0;
};

}  // namespace berth::node
