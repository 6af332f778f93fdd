// SPDX-License-Identifier: Apache-2.0
#include "server/pages/waste_metrics.h"

#include "server/telemetry/metrics_text.h"

namespace berth {

std::string WasteMetricsText(const std::map<std::string, Waste>& by_model) {
  MetricsText text;
  text.Family("berth_expected_waste_gpus", "gauge",
              "Free GPUs expected to stay idle once pods like recent ones fill the nodes");
  for (const auto& [model, waste] : by_model) {
    text.Sample(waste.expected_milli / kMilliPerGpu, {{"model", model}});
  }
  text.Family("berth_fragmentation_gpus", "gauge",
              "Free GPUs that an average recent pod cannot use, by cause");
  for (const auto& [model, waste] : by_model) {
    for (std::size_t cause = 0; cause < kFragmentCauses; ++cause) {
      text.Sample(waste.fragment_milli[cause] / kMilliPerGpu,
                  {{"model", model}, {"cause", NameOf(FragmentCause(cause))}});
    }
  }
  return text.Take();
}

}  // namespace berth
