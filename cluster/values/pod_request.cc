// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/pod_request.h"

#include <bit>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include "base/random.h"
#include "cluster/values/describe.h"

namespace berth {
namespace {

// Every member counts, by its description.
class ShapeHash {
 public:
  template <class T>
  void Add(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      AddNumber(static_cast<std::uint64_t>(value));
    } else {
      ForEachMember(value, [&](const auto& member) { Add(member.value); });
    }
  }
  void Add(const VersionNeeds&) {}  // few values
  [[nodiscard]] std::uint64_t sum() const { return sum_; }

 private:
  static constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // as in Mix64

  void AddNumber(std::uint64_t number) {
    sum_ = std::rotl(sum_, 5);
    if (number != 0) sum_ = (sum_ ^ number) * kOdd;  // most members are not set
  }
  void Add(const std::string& text) {
    AddNumber(text.empty() ? 0 : std::hash<std::string>{}(text));
  }
  template <class T>
  void Add(const std::vector<T>& list) {
    Add(std::span<const T>(list));
  }
  template <class T>
  void Add(const std::span<const T>& list) {
    AddNumber(list.size());
    for (const T& item : list) Add(item);
  }
  template <class T>
  void Add(const std::optional<T>& value) {
    AddNumber(value ? 1 : 0);
    if (value) Add(*value);
  }
  template <class... Kinds>
  void Add(const std::variant<Kinds...>& value) {
    AddNumber(value.index());
    std::visit([&](const auto& kind) { Add(kind); }, value);
  }

  std::uint64_t sum_ = kOdd;
};

// have: a PodRequest's shape, or a RefusedAsk.
template <class Have>
bool AsksNoLess(const Have& have, const OtherResources* others, const RefusedAsk& ask) {
  return have.gpus == ask.gpus && have.cpu_milli >= ask.cpu_milli &&
         have.memory_bytes >= ask.memory_bytes && have.ephemeral_bytes >= ask.ephemeral_bytes &&
         std::ranges::all_of(ask.others, [others](const OtherResource& other) {
           const auto* const has = others == nullptr ? nullptr : FindOther(*others, other.name);
           return has != nullptr && has->amount >= other.amount;
         });
}

}  // namespace

int MigSlices::count() const {
  int sum = 0;
  for (const MigWant& want : wants) sum += want.count;
  return sum;
}

GpuShare SumOf(const std::vector<GpuStep>& steps, ContainerMask containers) {
  GpuShare most{.count = -1}, running;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (containers != 0 && (containers >> i & 1) == 0) continue;
    const GpuShare sum = Plus(running, steps[i].share);
    most = {std::max(most.milli, sum.milli), std::max(most.memory_mib, sum.memory_mib),
            std::max(most.memory_milli, sum.memory_milli),
            most.count < 0 || most.count == steps[i].count ? steps[i].count : 0};
    if (!steps[i].ends_first) running = sum;
  }
  return most;
}

int RequestShape::gpu_count() const {
  if (const auto* whole = std::get_if<WholeGpus>(&gpus)) return whole->count;
  const auto* share = std::get_if<GpuShare>(&gpus);
  return share != nullptr ? share->count : 0;
}

int RequestShape::milli_per_gpu() const {
  if (const auto* share = std::get_if<GpuShare>(&gpus)) {
    return share->milli > 0 ? share->milli : share->memory_milli;
  }
  return std::holds_alternative<WholeGpus>(gpus) ? kMilliPerGpu : 0;
}

bool RequestShape::Admits(std::string_view model) const {
  if (!models.empty() && std::ranges::find(models, model) == models.end()) return false;
  return model_rules.Admit(model);
}

bool RequestShape::AdmitsGpu(std::string_view uuid) const {
  if (gpu_rules.empty()) return true;
  if (uuid.empty()) return false;
  const auto has = [&](bool refused) {
    const auto rule =
        std::ranges::lower_bound(gpu_rules, std::pair(refused, uuid), {}, [](const GpuRule& other) {
          return std::pair<bool, std::string_view>(other.refused, other.uuid);
        });
    return rule != gpu_rules.end() && rule->refused == refused && rule->uuid == uuid;
  };
  const bool accepts_few = !gpu_rules.front().refused;
  return !has(true) && (!accepts_few || has(false));
}

std::size_t HashValue(const RequestShape& shape) {
  ShapeHash hash;
  hash.Add(shape);
  return static_cast<std::size_t>(Mix64(hash.sum()));
}

std::size_t HashValue(const NodeConstraints& constraints) {
  ShapeHash hash;
  hash.Add(constraints);
  return static_cast<std::size_t>(Mix64(hash.sum()));
}

bool RefusedAsk::Covers(const PodRequest& pod) const {
  return AsksNoLess(pod.shape, pod.others.get(), *this) &&
         std::ranges::equal(containers, pod.containers, {}, {}, &ContainerAsk::gpus);
}

std::string WhyApart(const PodRequest& pod, const Gang& says, const std::string& scheduler) {
  const auto name_of = [](const std::string& name) {
    return name.empty() ? "default-scheduler" : name;
  };
  if (pod.scheduler != scheduler) {
    return pod.id.name + " has schedulerName " + name_of(pod.scheduler) + ", not " +
           name_of(scheduler) + ": pods of two schedulers do not start together";
  }
  const auto& [size, others] = std::pair(pod.gang.minimum, says.minimum);
  if (pod.gang.object != Gang::Object::kNone || !size || !others || size == others) return "";
  return pod.id.name + " says that " + std::to_string(*size) +
         " pods must start together, others say " + std::to_string(*others);
}

bool RefusedAsk::Covers(const RefusedAsk& other) const {
  return AsksNoLess(other, &other.others, *this) && containers == other.containers;
}

std::optional<RefusedAsk> RefusedAskOf(const PodRequest& pod) {
  if (!pod.shape.wants_gpu() || pod.containers.size() > RefusedAsk::kMostContainers) {
    return std::nullopt;
  }
  RefusedAsk ask{.gpus = pod.shape.gpus,
                 .containers = {},
                 .cpu_milli = pod.shape.cpu_milli,
                 .memory_bytes = pod.shape.memory_bytes,
                 .ephemeral_bytes = pod.shape.ephemeral_bytes};
  if (pod.others != nullptr) ask.others = *pod.others;
  for (const ContainerAsk& container : pod.containers) ask.containers.push_back(container.gpus);
  return ask;
}

}  // namespace berth
