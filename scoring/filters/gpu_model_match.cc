// SPDX-License-Identifier: Apache-2.0
#include "scoring/filters/gpu_model_match.h"

#include <bit>

#include "scoring/devices/device_picker.h"

namespace berth {

Reason GpuModelMatch::Check(const Node& node, const RequestShape& shape) const {
  const NodeSpec& spec = node.spec();
  const bool has_gpus = !spec.gpus.empty() || spec.places.count > 0;
  const bool by_name = shape.gpu_resource != kOfClaims;
  if (has_gpus && by_name && !spec.GivesGpusAs(shape.gpu_resource)) return Reason::kOtherResource;
  if (!shape.wants_gpu()) return Reason::kFits;
  if (!shape.Admits(spec.gpu_model)) {
    return has_gpus || spec.mig.known() ? Reason::kModelMismatch : Reason::kNoGpu;
  }
  const bool named = has_gpus && !shape.gpu_rules.empty();
  return named && std::popcount(AcceptedGpus(spec, shape)) < shape.gpu_count()
             ? Reason::kGpuMismatch
             : Reason::kFits;
}

}  // namespace berth
