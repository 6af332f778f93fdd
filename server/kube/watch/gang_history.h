// SPDX-License-Identifier: Apache-2.0
//
// ApiGangHistory: pods of gangs that have ended, as the API server still has them. The watch of
// pods leaves them out.
#pragma once

#include <string>
#include <vector>

#include "server/extender/ports.h"
#include "server/kube/client/api_client.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::kube {

class ApiGangHistory final : public GangHistory {
 public:
  // Of a namespace with more pods the first ones, by name.
  static constexpr int kMostPods = 20'000;

  // References: they outlive the object.
  ApiGangHistory(ApiClient& client, const wire::PodRules& rules, int most_pods = kMostPods)
      : client_(client), rules_(rules), most_pods_(most_pods) {}

  Result<std::vector<GangPast>> In(const std::string& namespace_name) override;

 private:
  ApiClient& client_;
  const wire::PodRules& rules_;
  const int most_pods_;
};

}  // namespace berth::kube
