// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/nvidia/nvidia_dialect.h"

#include <array>
#include <string>

#include "server/dialects/nvidia/node_mig.h"
#include "server/dialects/nvidia/nri_annotations.h"
#include "topology/mig/mig_profile.h"

namespace berth::dialects {
namespace {

constexpr std::array kMigResources = {kMigResourcePrefix};

class NvidiaNode final : public wire::NodeReading {
 public:
  explicit NvidiaNode(const wire::NodeFacts& facts) : facts_(facts) {}
  void CountGpus(wire::GpuDraft& draft) override {
    if (const std::string wrong = NriProblem(facts_.labels); !wrong.empty()) {
      draft.AddProblem(wrong);
    }
  }
  void AddMig(wire::MigDraft& draft) override { CompleteNodeMig(facts_, draft); }

 private:
  const wire::NodeFacts facts_;
};

class NvidiaDialect final : public wire::Dialect {
 public:
  [[nodiscard]] std::string_view name() const override { return "nvidia"; }
  [[nodiscard]] wire::DialectKeys keys() const override { return {.resources = kMigResources}; }
  [[nodiscard]] std::unique_ptr<wire::NodeReading> ReadNode(
      const wire::NodeFacts& facts) const override {
    return std::make_unique<NvidiaNode>(facts);
  }
  [[nodiscard]] Status AddAsk(std::string_view resource, std::int64_t amount,
                              wire::ResourceAsk& ask) const override {
    BERTH_TRY(const MigResource device, ParseMigResource(resource));
    ask.mig.Add(device, wire::Capped(amount));
    return {};
  }
  void WriteGrants(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                   WallTime, wire::Annotations& annotations) const override {
    WriteNri(pod, placement, node, annotations);
  }
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeNvidia() { return std::make_unique<NvidiaDialect>(); }

}  // namespace berth::dialects
