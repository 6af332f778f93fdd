// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/koordinator/koordinator_ask.h"

#include <algorithm>
#include <string>

namespace berth::dialects {
namespace {

using wire::ContainerSpec;
using wire::PodParts;
using wire::ResourceAsk;

constexpr std::int64_t kAllPercent = 100;
constexpr std::int64_t kMostPercent = std::int64_t{1} << 40;  // that no arithmetic overflows
constexpr std::int64_t kMilliOfPercent = kMilliPerGpu / kAllPercent;

// By resource, as ResourceAsk::agent_amounts has them.
enum Word : std::size_t { kGpu, kCore, kMemory, kRatio, kShared };
using Amounts = std::array<std::int64_t, 5>;
static_assert(std::tuple_size_v<decltype(kKoordinatorResources)> ==
              std::tuple_size_v<decltype(ResourceAsk::agent_amounts)>);

bool AsksAny(const Amounts& asked) {
  return std::ranges::any_of(asked, [](std::int64_t amount) { return amount > 0; });
}

std::string Name(Word word) { return std::string(kKoordinatorResources[word]); }

// The first of the resources that is asked for.
Word FirstOf(const Amounts& asked) {
  return static_cast<Word>(
      std::ranges::find_if(asked, [](std::int64_t amount) { return amount > 0; }) - asked.begin());
}

std::int64_t PercentOf(const Amounts& asked) { return asked[kGpu] + asked[kRatio]; }

std::int64_t CountOf(const Amounts& asked) {
  if (asked[kShared] > 0) return asked[kShared];
  return std::max<std::int64_t>(PercentOf(asked) / kAllPercent, 1);
}

Status CheckTogether(const ResourceAsk& all) {
  const Amounts& asked = all.agent_amounts;
  const Word first = FirstOf(asked);
  if (all.gpus > 0 || all.wants_share() || !all.mig.empty()) {
    return Invalid(Name(first) + ": want GPU resources of one agent, got another agent's too");
  }
  for (const Word other : {kCore, kMemory, kRatio, kShared}) {
    if (asked[kGpu] == 0 || asked[other] == 0) continue;
    return Invalid(Name(kGpu) + ": want it alone, got " + Name(other) + " beside it");
  }
  if (asked[kMemory] > 0 && asked[kRatio] > 0) {
    return Invalid(Name(kMemory) + ": want it or " + Name(kRatio) + ", got both");
  }
  if (asked[kMemory] == 0 && PercentOf(asked) == 0) {
    return Invalid(Name(first) + ": want " + Name(kMemory) + " or " + Name(kRatio) +
                   " beside it, got none");
  }
  return {};
}

// Of one of the amounts in percent.
Status CheckPercent(Word word, const Amounts& asked) {
  const std::int64_t percent = asked[word], gpus = asked[kShared];
  const std::string got = ", got " + std::to_string(percent);
  if (gpus == 0) {
    if (percent <= kAllPercent || percent % kAllPercent == 0) return {};
    return Invalid(Name(word) + ": want 1..100 percent of a GPU, or 100 for each of several" + got);
  }
  if (percent % gpus == 0 && percent / gpus <= kAllPercent) return {};
  return Invalid(Name(word) + ": want as many percent of each of " + std::to_string(gpus) +
                 " GPUs (" + Name(kShared) + "), 100 at most" + got);
}

// No GPU has more than all of its compute.
Status CheckCore(const Amounts& asked) {
  const std::int64_t gpus = CountOf(asked);
  if (asked[kCore] <= gpus * kAllPercent) return {};
  return Invalid(Name(kCore) + ": want 100 at most of each of " + std::to_string(gpus) +
                 (gpus > 1 ? " GPUs" : " GPU") + ", got " + std::to_string(asked[kCore]));
}

Status CheckAsk(const ResourceAsk& all) {
  BERTH_TRY_STATUS(CheckTogether(all));
  for (const Word word : {kGpu, kCore, kRatio}) {
    BERTH_TRY_STATUS(CheckPercent(word, all.agent_amounts));
  }
  return CheckCore(all.agent_amounts);
}

// Of all containers of the pod.
struct Pod {
  std::int64_t gpus = 1;
  bool by_memory = false;
  bool apart = false;  // other percent of compute than of memory
};

// What the container has of each GPU. Of pods that ask by percent of the memory the compute goes
// with it, unless they ask for other compute.
Status MakePart(const Pod& pod, ContainerSpec& container) {
  ResourceAsk& ask = container.ask;
  const Amounts& asked = ask.agent_amounts;
  for (const Word word : {kGpu, kCore, kRatio}) {
    if (asked[word] * kMilliOfPercent % pod.gpus == 0) continue;
    return Invalid("container " + container.name + ": " + Name(word) +
                   ": want as much of each of " + std::to_string(pod.gpus) +
                   " GPUs, in thousandths, got " + std::to_string(asked[word]));
  }
  const auto milli_of_each = [&pod](std::int64_t percent) {
    return percent * kMilliOfPercent / pod.gpus;
  };
  ask.share_gpus = pod.gpus;
  ask.share_bytes = (asked[kMemory] + pod.gpus - 1) / pod.gpus;
  if (pod.by_memory || pod.apart) ask.share_milli = milli_of_each(asked[kCore]);
  if (pod.apart) ask.share_memory_milli = milli_of_each(PercentOf(asked));
  if (!pod.by_memory && !pod.apart) ask.share_milli = milli_of_each(PercentOf(asked));
  return {};
}

// Containers may have parts of what the pod has together.
Status MakeWhole(std::int64_t gpus, ContainerSpec& container) {
  const std::int64_t percent = PercentOf(container.ask.agent_amounts);
  container.ask.gpus = percent / kAllPercent;
  if (percent % kAllPercent == 0) return {};
  return Invalid("container " + container.name + ": " + Name(kRatio) +
                 ": want 100 for each GPU in a pod with " + std::to_string(gpus) + ", got " +
                 std::to_string(percent));
}

bool HasWholeOnes(const ContainerSpec& container) {
  return PercentOf(container.ask.agent_amounts) % kAllPercent == 0;
}

}  // namespace

void AddKoordinatorAsk(std::string_view resource, std::int64_t amount, ResourceAsk& ask) {
  if (amount <= 0) return;
  const auto word = std::ranges::find(kKoordinatorResources, resource);
  const bool bytes = *word == kKoordinatorMemory;
  ask.agent_amounts[static_cast<std::size_t>(word - kKoordinatorResources.begin())] =
      bytes ? wire::Capped(amount) : std::min(amount, kMostPercent);
  ask.part_resource = *word;
}

Status FindKoordinatorShares(PodParts& parts) {
  const auto asks = [](const ContainerSpec& container) {
    return AsksAny(container.ask.agent_amounts);
  };
  if (std::ranges::none_of(parts.containers, asks)) return {};
  const ResourceAsk all = EffectiveAsk(parts);
  const Amounts& asked = all.agent_amounts;
  BERTH_TRY_STATUS(CheckAsk(all));
  const std::int64_t percent = PercentOf(asked);
  const Pod pod{.gpus = CountOf(asked),
                .by_memory = asked[kMemory] > 0,
                .apart = percent > 0 && asked[kCore] > 0 && asked[kCore] != percent};
  // What the containers of one GPU have together may be all of it.
  const bool whole = percent == pod.gpus * kAllPercent && !pod.apart &&
                     (pod.gpus > 1 || std::ranges::all_of(parts.containers, HasWholeOnes));
  for (ContainerSpec& container : parts.containers) {
    if (!asks(container)) continue;
    container.ask.part_resource = {};
    BERTH_TRY_STATUS(whole ? MakeWhole(pod.gpus, container) : MakePart(pod, container));
    if (container.ask.wants_gpu()) container.ask.share_agent = kKoordinatorAgent;
  }
  return {};
}

wire::RecordedAsk KoordinatorAskOf(const PodParts& parts) {
  const Amounts asked = EffectiveAsk(parts).agent_amounts;
  if (!AsksAny(asked)) return wire::PlainAsk(parts);
  const std::int64_t gpus = CountOf(asked), percent = PercentOf(asked);
  const auto milli_of_each = [gpus](std::int64_t of_all) {
    return static_cast<int>(std::min<std::int64_t>(of_all * kMilliOfPercent / gpus, kMilliPerGpu));
  };
  wire::RecordedAsk ask{.count = gpus};
  ask.part.milli = milli_of_each(asked[kCore] > 0 ? asked[kCore] : percent);
  ask.part.memory_mib = ((asked[kMemory] + gpus - 1) / gpus + (1 << 20) - 1) >> 20;
  ask.part.memory_milli = milli_of_each(percent);
  return ask;
}

Status RefuseKoordinatorChoices(const PodParts& parts) {
  for (const std::string_view key : kKoordinatorChoices) {
    if (!parts.annotations.contains(key)) continue;
    return wire::WrongAnnotation(
        key,
        "not understood; want berth.dev/gpu-model, berth.dev/link, berth.dev/numa, a "
        "node selector or affinity");
  }
  return {};
}

}  // namespace berth::dialects
