// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/devices/devices_dialect.h"

#include "server/dialects/devices/node_gpus.h"

namespace berth::dialects {
namespace {

class CountedNode final : public wire::NodeReading {
 public:
  explicit CountedNode(const wire::NodeFacts& facts) : facts_(facts) {}
  void CountGpus(wire::GpuDraft& draft) override { CountNodeGpus(facts_, draft); }

 private:
  const wire::NodeFacts facts_;
};

class DevicesDialect final : public wire::Dialect {
 public:
  [[nodiscard]] std::string_view name() const override { return "devices"; }
  [[nodiscard]] std::unique_ptr<wire::NodeReading> ReadNode(
      const wire::NodeFacts& facts) const override {
    return std::make_unique<CountedNode>(facts);
  }
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeDevices() { return std::make_unique<DevicesDialect>(); }

}  // namespace berth::dialects
