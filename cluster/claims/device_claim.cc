// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_claim.h"

#include <algorithm>

namespace berth {

std::string NameOf(const DeviceRequest& request, const DeviceWant& want) {
  return want.name.empty() ? request.name : request.name + "/" + want.name;
}

bool Covers(const std::vector<std::string>& names, const DeviceRequest& request,
            const DeviceWant& want) {
  return names.empty() || std::ranges::find(names, request.name) != names.end() ||
         std::ranges::find(names, NameOf(request, want)) != names.end();
}

}  // namespace berth
