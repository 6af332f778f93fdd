// SPDX-License-Identifier: Apache-2.0
#include "server/why/readiness.h"

#include "server/kube/kube_cluster.h"

namespace berth {

bool Readiness::is_standby() const { return reason_.load() == kube::kStandby; }

http::HttpResponse NotReadyAnswer(std::string_view why, const LeaderName& leader) {
  std::string text = "not ready: " + std::string(why);
  if (const std::string name = leader ? leader() : ""; !name.empty()) {
    text += " (leader: " + name + ")";
  }
  return http::ErrorResponse(503, text);
}

}  // namespace berth
