// SPDX-License-Identifier: Apache-2.0
//
// KAI's fractions of GPUs. KAI puts a pod of its own on each GPU that it shares, which asks for
// nvidia.com/gpu: 1 and says, as soon as it runs, which GPU that is:
//
//   run.ai/reserve_for_gpu_index: GPU-a
//
// The pods with a fraction (annotation gpu-fraction, or gpu-memory in MiB) ask the kubelet for
// nothing, so nothing of them is counted: their GPU is held by that one. (Those that NVIDIA's
// driver limits are counted: fractioning/fractioning_dialect.cc.) Such a pod that KAI does not
// place gets no GPU, and is refused. (KAI-Scheduler at 0.13, pkg/binder/binding/
// resourcereservation; pkg/resourcereservation/patcher/pod_patcher.go.)
#include <array>
#include <string>

#include "server/dialects/registry.h"
#include "server/wire/pod/recorded_devices.h"

namespace berth::dialects {
namespace {

constexpr std::string_view kReservedKey = "run.ai/reserve_for_gpu_index";
// What its users ask by, and what to ask Berth by in its place.
struct FractionWord {
  std::string_view key, resource;
};
constexpr std::array kFractionWords = {FractionWord{"gpu-fraction", "berth.dev/gpu-milli"},
                                       FractionWord{"gpu-memory", "berth.dev/gpu-memory-mib"}};
constexpr std::string_view kNotKnown = "-1";
constexpr std::size_t kLongest = 64;
constexpr std::array kPods = {kFractionWords[0].key, kFractionWords[1].key};
constexpr std::array kReserved = {kReservedKey};

class KaiDialect final : public wire::Dialect {
 public:
  [[nodiscard]] std::string_view name() const override { return "kai"; }
  [[nodiscard]] wire::DialectKeys keys() const override {
    return {.of_pods = kPods, .grants = kReserved};
  }

  [[nodiscard]] Status FinishAsk(const wire::PodParts& parts, PodRequest& pod,
                                 MigWant&) const override {
    // Its own scheduler places it, whatever that is called: not the one that is there by default.
    const bool is_kais = !parts.scheduler.empty() && parts.scheduler != "default-scheduler";
    if (pod.shape.wants_gpu() || is_kais) return {};
    for (const auto& [key, resource] : kFractionWords) {
      const std::string* const said = parts.Annotation(key);
      if (said == nullptr || said->empty()) continue;
      return wire::WrongAnnotation(key,
                                   "asks for a GPU fraction that only KAI's scheduler assigns; "
                                   "want its scheduler in spec.schedulerName, or the resource " +
                                       std::string(resource));
    }
    return {};
  }

  [[nodiscard]] Status ReadGrants(std::string_view, const std::string& text,
                                  const wire::PodParts& asked,
                                  wire::ObservedPod& observed) const override {
    if (text == kNotKnown) return {};
    if (text.empty() || text.size() > kLongest) {
      return Invalid("want the UUID of a GPU, got \"" + text.substr(0, kLongest) + "\"");
    }
    if (wire::EffectiveAsk(asked).gpus == 0) {
      return Invalid("want a pod that also asks for a whole GPU");
    }
    wire::RecordedAsk whole = wire::PlainAsk(asked);
    whole.gpus = {{.uuid = text, .says = wire::kWholeGpu}};
    observed.pod.shape.share_mode = ShareMode::kReserved;
    return wire::TakeRecordedGpus({whole}, observed);
  }
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeKai() { return std::make_unique<KaiDialect>(); }

}  // namespace berth::dialects
