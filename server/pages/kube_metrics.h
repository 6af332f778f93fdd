// SPDX-License-Identifier: Apache-2.0
//
// The Kubernetes client's metrics in Prometheus' text format.
#pragma once

#include <string>

#include "base/clock.h"
#include "server/kube/client/http_api_client.h"
#include "server/kube/kube_cluster.h"

namespace berth {

std::string KubeMetricsText(const kube::KubeClusterStats& cluster,
                            const kube::ApiClientStats& client, Instant now);

}  // namespace berth
