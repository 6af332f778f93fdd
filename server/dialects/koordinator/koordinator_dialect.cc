// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/koordinator/koordinator_dialect.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "cluster/quantity.h"
#include "server/wire/pod_object.h"
#include "server/wire/strict_json.h"

namespace berth::dialects {
namespace {

using wire::Fields;
using wire::Json;

constexpr std::string_view kAllocatedKey = "scheduling.koordinator.sh/device-allocated";
constexpr std::array kGrants = {kAllocatedKey};
constexpr std::array<std::string_view, 5> kResources = {
    "koordinator.sh/gpu", "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory",
    "koordinator.sh/gpu-memory-ratio", "koordinator.sh/gpu.shared"};

constexpr const char* kCore = "koordinator.sh/gpu-core";
constexpr const char* kMemoryRatio = "koordinator.sh/gpu-memory-ratio";
constexpr const char* kMemory = "koordinator.sh/gpu-memory";

constexpr int kMilliPerPercent = kMilliPerGpu / 100;

// 0 where it is not there. Kubernetes reads a quantity from a text or a number.
Result<std::int64_t> AmountOf(const Json& resources, const std::string& path, const char* key) {
  if (!resources.contains(key)) return 0;
  const Json& value = resources[key];
  const auto read = Quantity::Parse(value.is_string() ? value.get<std::string>() : value.dump());
  if (!read) return tl::unexpected(Error(read.error()).Within(path + "." + key));
  return read->Value();
}

// The compute asked for; by memory alone it goes with the memory.
Result<int> MilliOf(const Json& resources, const std::string& path) {
  BERTH_TRY(std::int64_t percent, AmountOf(resources, path, kCore));
  if (percent == 0) {
    BERTH_TRY(percent, AmountOf(resources, path, kMemoryRatio));
  }
  if (percent < 1 || percent > 100) {
    return Invalid(path + ": want 1 to 100 percent of a GPU in " + kCore + " or " + kMemoryRatio +
                   ", got " + std::to_string(percent));
  }
  return static_cast<int>(percent) * kMilliPerPercent;
}

Status ReadGpu(const Json& json, const std::string& path, std::vector<DeviceGrant>& grants) {
  Fields fields(json, path);
  DeviceGrant grant{.gpu = -1};
  fields.Int("minor", 0, kMaxGpus - 1, grant.gpu);
  fields.Object("resources", [&grant](const Json& resources, const std::string& at) -> Status {
    BERTH_TRY(grant.milli, MilliOf(resources, at));
    BERTH_TRY(const std::int64_t bytes, AmountOf(resources, at, kMemory));
    if (bytes < 0) return Invalid(at + "." + kMemory + ": want 0 or more");
    grant.memory_mib = bytes >> 20;
    return {};
  });
  BERTH_TRY_STATUS(fields.FinishForeign());
  if (grant.gpu < 0) return Invalid(path + ".minor: want a number, got none");
  grants.push_back(grant);
  return {};
}

Result<std::vector<DeviceGrant>> ParseAllocated(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Invalid("want JSON, got something else");
  std::vector<DeviceGrant> grants;
  Fields fields(json, "");
  fields.List("gpu", [&grants](const Json& gpu, const std::string& path) {
    return ReadGpu(gpu, path, grants);
  });
  BERTH_TRY_STATUS(fields.FinishForeign());
  std::ranges::sort(grants, {}, &DeviceGrant::gpu);
  const auto twice = std::ranges::adjacent_find(grants, {}, &DeviceGrant::gpu);
  if (twice != grants.end()) {
    return Invalid("gpu: want each minor once, got " + std::to_string(twice->gpu) + " twice");
  }
  return grants;
}

// The request in our terms. Parts of several GPUs are none of these: where it is not known which
// GPUs they are of, they count as whole ones.
GpuAsk AskOf(const std::vector<DeviceGrant>& grants) {
  const DeviceGrant& first = grants.front();
  if (grants.size() == 1 && first.milli < kMilliPerGpu) {
    return GpuShare{first.milli, first.memory_mib};
  }
  return WholeGpus{static_cast<int>(grants.size())};
}

class KoordinatorDialect final : public wire::Dialect {
 public:
  [[nodiscard]] std::string_view name() const override { return "koordinator"; }
  [[nodiscard]] wire::DialectKeys keys() const override {
    return {.resources = kResources, .grants = kGrants};
  }
  [[nodiscard]] Status AddAsk(std::string_view resource, std::int64_t amount,
                              wire::ResourceAsk& ask) const override {
    if (amount > 0) ask.part_resource = *std::ranges::find(kResources, resource);
    return {};
  }
  [[nodiscard]] Status FinishAsk(const wire::PodParts& parts, PodRequest&,
                                 MigWant&) const override {
    for (const wire::ContainerSpec& container : parts.containers) {
      const std::string_view part = container.ask.part_resource;
      if (std::ranges::find(kResources, part) == kResources.end()) continue;
      return Invalid("container " + container.name + ": " + std::string(part) +
                     " asks for GPUs, or a share of one, which Koordinator's scheduler gives; want "
                     "its scheduler in spec.schedulerName, or nvidia.com/gpu, or "
                     "berth.dev/gpu-milli");
    }
    return {};
  }
  [[nodiscard]] Status ReadGrants(std::string_view, const std::string& text,
                                  wire::ObservedPod& observed) const override {
    auto grants = ParseAllocated(text);
    GpuAsk& ask = observed.pod.shape.gpus;
    if (!grants) {  // it may have any GPU
      if (!observed.pod.shape.wants_gpu()) ask = WholeGpus{1};
      return tl::unexpected(std::move(grants).error());
    }
    if (grants->empty()) return {};  // other devices alone
    ask = AskOf(*grants);
    observed.placement.grants = *std::move(grants);
    return {};
  }
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeKoordinator() {
  return std::make_unique<KoordinatorDialect>();
}

}  // namespace berth::dialects
