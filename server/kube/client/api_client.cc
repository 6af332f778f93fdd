// SPDX-License-Identifier: Apache-2.0
#include "server/kube/client/api_client.h"

#include "server/wire/api/watch_json.h"

namespace berth::kube {

std::string RefusalText(const ApiResponse& response) {
  const std::string message = wire::DecodeStatus(response.body).message;
  return "the API server answered " + std::to_string(response.status) +
         (message.empty() ? "" : ": " + message);
}

}  // namespace berth::kube
