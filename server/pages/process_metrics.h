// SPDX-License-Identifier: Apache-2.0
//
// The metrics of the process itself, by the names that Prometheus' client libraries agree on: CPU,
// memory, open files, and when it started
// (https://prometheus.io/docs/instrumenting/writing_clientlibs).
#pragma once

#include <string>

namespace berth {

// What /proc does not say is left out.
std::string ProcessMetricsText();

}  // namespace berth
