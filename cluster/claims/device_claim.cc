// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_claim.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace berth {

std::string NameOf(const DeviceRequest& request, const DeviceWant& want) {
  return want.name.empty() ? request.name : request.name + "/" + want.name;
}

bool Covers(const std::vector<std::string>& names, const DeviceRequest& request,
            const DeviceWant& want) {
  return names.empty() || std::ranges::find(names, request.name) != names.end() ||
         std::ranges::find(names, NameOf(request, want)) != names.end();
}

namespace {

struct Got {
  const DeviceRequest& request;
  const DeviceWant& want;
};

std::vector<Got> GotBy(const DeviceClaim& claim, std::span<const int> wants) {
  std::vector<Got> got;
  for (std::size_t i = 0; i < claim.requests.size(); ++i) {
    const DeviceRequest& request = claim.requests[i];
    got.push_back({request, request.wants[static_cast<std::size_t>(wants[i])]});
  }
  return got;
}

bool Covers(const AllocationConfig& config, const Got& got) {
  return Covers(config.requests, got.request, got.want);
}

}  // namespace

std::vector<AllocationConfig> ConfigsOf(const DeviceClaim& claim, std::span<const int> wants,
                                        const ConfigsOfClass& of_class) {
  const std::vector<Got> got = GotBy(claim, wants);
  std::vector<AllocationConfig> configs;
  std::map<std::string_view, std::pair<std::size_t, std::size_t>> of_classes;  // begin, end
  for (const Got& each : got) {
    const std::string name = NameOf(each.request, each.want);
    const std::string_view class_name = each.want.device_class;
    const auto known = of_classes.find(class_name);
    if (known != of_classes.end()) {
      for (std::size_t i = known->second.first; i < known->second.second; ++i) {
        configs[i].requests.push_back(name);
      }
      continue;
    }
    const std::size_t begin = configs.size();
    for (DeviceConfig& config : of_class(class_name)) {
      configs.push_back({true, {name}, std::move(config.content)});
    }
    of_classes.emplace(class_name, std::pair(begin, configs.size()));
  }
  for (const DeviceConfig& config : claim.configs) {
    const AllocationConfig copied{false, config.requests, config.content};
    if (std::ranges::any_of(got, [&copied](const Got& each) { return Covers(copied, each); })) {
      configs.push_back(copied);
    }
  }
  for (AllocationConfig& config : configs) {
    if (std::ranges::all_of(got, [&config](const Got& each) { return Covers(config, each); })) {
      config.requests.clear();
    }
  }
  return configs;
}

}  // namespace berth
