// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/hami/hami_dialect.h"

#include <algorithm>
#include <array>
#include <utility>

#include "server/dialects/hami/hami_ask.h"
#include "server/dialects/hami/hami_binding.h"
#include "server/dialects/hami/hami_links.h"
#include "server/dialects/hami/hami_mig.h"
#include "server/dialects/vgpu/vgpu_devices.h"
#include "server/wire/pod/recorded_devices.h"

namespace berth::dialects {
namespace {

// The registers of its agents for other vendors: hami.io/node-register-Ascend910B3, ...
constexpr std::string_view kHamiOtherRegisters = "hami.io/node-register-";
constexpr std::string_view kHamiAmdRegister = "hami.io/node-amd-register";
constexpr std::string_view kHamiDcuRegister = "hami.io/node-dcu-register";
constexpr std::string_view kHamiMluRegister = "hami.io/node-mlu-register";
// Of HAMi before 2.4, k8s-vgpu-scheduler. Its scheduler alone gives these GPUs.
constexpr std::string_view kOldHamiRegister = "4pd.io/node-nvidia-register";

constexpr std::array kHamiNodeKeys = {
    kHamiRegisterAnnotation, kHamiCordonAnnotation, kHamiScoreAnnotation, kHamiOtherRegisters,
    kHamiAmdRegister,        kHamiDcuRegister,      kHamiMluRegister,     kOldHamiRegister};
constexpr std::array kHamiPodKeys = [] {
  std::array<std::string_view, kHamiAskKeys.size() + kHamiPolicyKeys.size()> keys;
  std::ranges::copy(kHamiPolicyKeys, std::ranges::copy(kHamiAskKeys, keys.begin()).out);
  return keys;
}();
constexpr std::array kHamiGrants = {kHamiMigAnnotation, kHamiDevicesAnnotation};

// One node of HAMi's. The register is parsed once, for MIG devices and for links.
class HamiNode final : public wire::NodeReading {
 public:
  HamiNode(const wire::NodeFacts& facts, bool gives_devices)
      : scores_(facts.Annotation(kHamiScoreAnnotation)),
        register_text_(facts.Annotation(kHamiRegisterAnnotation)),
        register_(ParseHamiList(register_text_)),
        gives_devices_(gives_devices),
        mig_(ReadMig(facts, gives_devices)) {}

  // HAMi announces each GPU as several devices.
  void CountGpus(wire::GpuDraft& draft) override {
    // What cannot be read may be anything; HAMi's agent is there all the same.
    draft.partitioned += mig_ ? mig_->devices : 0;
    if (gives_devices_ && mig_ && !mig_->others.empty()) return Share(draft);
    draft.served_by_other = draft.served_by_other || !mig_ || mig_->serves_others;
    draft.shared_by_other = draft.shared_by_other || !mig_ || mig_->shares_others;
  }

  std::optional<wire::AnnouncedLinks> Links() override {
    if (scores_.empty()) return std::nullopt;
    wire::AnnouncedLinks links{.annotation = kHamiScoreAnnotation, .matrix = {}, .uuids = {}};
    auto read = register_ ? ParseHamiLinks(scores_, *register_)
                          : Result<HamiLinks>(tl::unexpected(
                                Error(register_.error()).Within(kHamiRegisterAnnotation)));
    if (read) {
      links.matrix = std::move(read->matrix);
      links.uuids = std::move(read->uuids);
    } else {
      links.matrix = tl::unexpected(std::move(read).error());
    }
    return links;
  }

  void AddMig(wire::MigDraft& draft) override {
    if (!mig_) {
      draft.AddProblem("annotation " + std::string(kHamiRegisterAnnotation) + ": " +
                       mig_.error().message);
    } else if (!draft.spec) {
      draft.spec = std::move(spec_);
    }
  }

 private:
  // Those that it does not cut are Berth's to give.
  void Share(wire::GpuDraft& draft) {
    if (draft.shared) return;
    draft.shared = wire::SharedGpus{.agent = std::string(kHamiAgent),
                                    .resource = std::string(kHamiWords.number),
                                    .isolation = Isolation::kMemory,
                                    .gpus = std::move(mig_->others),
                                    .models = std::move(mig_->models)};
    const auto count =
        std::ranges::find(draft.devices, kHamiWords.number, &wire::DeviceCount::resource);
    const std::int64_t offered = count == draft.devices.end() ? 0 : count->allocatable;
    CloseWithdrawn(offered - mig_->devices, *draft.shared);
  }

  Result<HamiMig> ReadMig(const wire::NodeFacts& facts, bool gives_devices) {
    if (register_text_.empty()) return HamiMig();
    // The older form, which is no JSON.
    if (!register_text_.starts_with('[')) return HamiMig{std::nullopt, 0, true, true};
    if (!register_) return tl::unexpected(register_.error());
    BERTH_TRY(HamiMig read, ReadHamiMig({.registered = *register_,
                                         .cordoned = facts.Annotation(kHamiCordonAnnotation),
                                         .label = facts.product,
                                         .give = gives_devices}));
    if (read.announced) {
      BERTH_TRY(spec_,
                wire::BuildMig(*std::move(read.announced), "", facts.product, facts.library));
    }
    return read;
  }

  std::optional<MigSpec> spec_;  // nothing where no GPU is partitioned
  const std::string_view scores_;
  const std::string_view register_text_;
  const Result<wire::Json> register_;
  const bool gives_devices_;
  Result<HamiMig> mig_;
};

// A node whose GPUs, of another vendor than NVIDIA or by an old agent, HAMi hands out in parts:
// they are its scheduler's to give.
class HamiOtherNode final : public wire::NodeReading {
 public:
  void CountGpus(wire::GpuDraft& draft) override {
    draft.served_by_other = draft.shared_by_other = true;
  }
};

bool RegistersOthers(const wire::NodeFacts& facts) {
  for (const auto& [key, value] : facts.annotations) {
    const bool is_register = key.starts_with(kHamiOtherRegisters) || key == kHamiAmdRegister ||
                             key == kHamiDcuRegister || key == kHamiMluRegister ||
                             key == kOldHamiRegister;
    if (is_register && !value.empty()) return true;
  }
  return false;
}

class HamiDialect final : public wire::Dialect {
 public:
  explicit HamiDialect(bool gives_devices) : gives_devices_(gives_devices) {}

  [[nodiscard]] std::string_view name() const override { return kHamiAgent; }
  [[nodiscard]] wire::DialectKeys keys() const override {
    return {.of_nodes = kHamiNodeKeys,
            .of_pods = kHamiPodKeys,
            .resources = kHamiResources,
            .grants = kHamiGrants,
            .grants_of_own_nodes = true};
  }

  [[nodiscard]] std::unique_ptr<wire::NodeReading> ReadNode(
      const wire::NodeFacts& facts) const override {
    if (facts.Annotation(kHamiRegisterAnnotation).empty() &&
        facts.Annotation(kHamiScoreAnnotation).empty()) {
      return RegistersOthers(facts) ? std::make_unique<HamiOtherNode>() : nullptr;
    }
    return std::make_unique<HamiNode>(facts, gives_devices_);
  }

  [[nodiscard]] Status AddAsk(std::string_view resource, std::int64_t amount,
                              wire::ResourceAsk& ask) const override {
    AddVgpuAsk(kHamiWords, resource, amount, ask);
    return {};
  }
  [[nodiscard]] Status FindShares(wire::PodParts& parts) const override {
    return gives_devices_ ? FindHamiShares(parts) : Status();
  }
  [[nodiscard]] Status FinishAsk(const wire::PodParts& parts, PodRequest& pod,
                                 MigWant& need) const override {
    BERTH_TRY_STATUS(ReadHamiChoices(parts, pod.shape));
    if (pod.shape.mig() != nullptr || need != MigWant{}) return RefuseMigUuids(parts);
    BERTH_TRY(const std::optional<MigWant> asked, ReadHamiAsk(parts, gives_devices_));
    need = asked.value_or(need);
    return {};
  }

  // Such a pod asks in HAMi's terms (nvidia.com/gpu with nvidia.com/gpumem) for any profile with so
  // much memory.
  [[nodiscard]] Status ReadGrants(std::string_view key, const std::string& text,
                                  const wire::PodParts& asked,
                                  wire::ObservedPod& observed) const override {
    if (key == kHamiDevicesAnnotation) return ReadVgpuDevices(kHamiWords, text, asked, observed);
    BERTH_TRY(std::vector<MigGrant> devices, ParseHamiMigAllocations(text));
    return wire::TakeRecordedMig(asked, std::move(devices), observed);
  }
  void WriteGrants(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                   WallTime now, wire::Annotations& annotations) const override {
    if (!SpeaksHami(placement, node)) return;
    for (auto& annotation : HamiAnnotations(pod, placement, node, now)) {
      annotations.push_back(std::move(annotation));
    }
  }

 private:
  const bool gives_devices_;
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeHami(bool gives_devices) {
  return std::make_unique<HamiDialect>(gives_devices);
}

}  // namespace berth::dialects
