// SPDX-License-Identifier: Apache-2.0
//
// A binder that keeps the annotation berth.dev/devices of every pod, as the API server would show
// it.
#pragma once

#include <map>
#include <string>

#include "server/extender/ports/ports.h"
#include "server/wire/pod/devices_annotation.h"

namespace berth::test {

class AnnotatingBinder final : public PodBinder {
 public:
  Status Bind(const BindOrder& order) override {
    devices[order.pod.id.uid] = wire::EncodeDevices(order.pod, order.placement, order.node);
    return {};
  }
  Result<PodTruth> Find(const PodId&) override { return Fail(Errc::kNotFound, "pod is gone"); }

  std::map<std::string, std::string> devices;  // by UID
};

}  // namespace berth::test
