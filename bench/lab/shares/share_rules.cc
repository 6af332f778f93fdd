// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/shares/share_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "base/text.h"
#include "scoring/devices/device_picker.h"
#include "scoring/registry.h"

namespace berth::replay {
namespace {

constexpr double kHamiPlaces = 10;  // of a card

class Hami final : public ShareRule {
 public:
  explicit Hami(double sign) : sign_(sign) {}

 protected:
  [[nodiscard]] double OfCard(const Card& card) const override {
    return sign_ * ((card.pods + 1) / kHamiPlaces + card.compute + card.memory);
  }
  [[nodiscard]] double OfNode(const std::vector<Card>&,
                              const std::vector<Card>& all) const override {
    double sum = 0;
    for (const Card& card : all) sum += card.pods / kHamiPlaces + card.compute + card.memory;
    return sign_ * sum / static_cast<double>(all.size());
  }

 private:
  const double sign_;
};

class GpuShareBestFit final : public ShareRule {
 protected:
  [[nodiscard]] double OfCard(const Card& card) const override { return -card.free_mib; }
  [[nodiscard]] double OfNode(const std::vector<Card>& given,
                              const std::vector<Card>& all) const override {
    // For a share the best card; among nodes for whole GPUs, which are all idle, the fullest.
    double free = 0;
    for (const Card& card : all) free += card.free_mib;
    return -given.front().free_mib - free / 1e6;
  }
};

class Volcano final : public ShareRule {
 protected:
  [[nodiscard]] double OfCard(const Card& card) const override { return card.index; }
  [[nodiscard]] double OfNode(const std::vector<Card>& given,
                              const std::vector<Card>&) const override {
    double sum = 0;
    for (const Card& card : given) sum += 100 * card.memory;
    return std::floor(sum + 0.5);
  }
};

class Koordinator final : public ShareRule {
 public:
  explicit Koordinator(double sign) : sign_(sign) {}

 protected:
  [[nodiscard]] double OfCard(const Card& card) const override {
    return sign_ * Percent(card.memory);
  }
  [[nodiscard]] double OfNode(const std::vector<Card>& given,
                              const std::vector<Card>& all) const override {
    double sum = 0;
    for (const Card& card : all) {
      const auto same = std::ranges::find(given, card.index, &Card::index);
      sum += same == given.end() ? card.memory : same->memory;
    }
    return sign_ * Percent(sum / static_cast<double>(all.size()));
  }

 private:
  // Of what is in use where the most is wanted, of what is free where the least is; truncated.
  [[nodiscard]] double Percent(double used) const {
    return sign_ > 0 ? std::floor(100 * used) : -std::floor(100 * (1 - used));
  }

  const double sign_;
};

using MadeShareRule = std::unique_ptr<const ShareRule>;
struct NamedShareRule {
  std::string_view name;
  MadeShareRule (*make)();
};
constexpr std::array<NamedShareRule, 6> kRules = {{
    {"hami-binpack", []() -> MadeShareRule { return std::make_unique<const Hami>(1); }},
    {"hami-spread", []() -> MadeShareRule { return std::make_unique<const Hami>(-1); }},
    {"gpushare", []() -> MadeShareRule { return std::make_unique<const GpuShareBestFit>(); }},
    {"volcano", []() -> MadeShareRule { return std::make_unique<const Volcano>(); }},
    {"koordinator", []() -> MadeShareRule { return std::make_unique<const Koordinator>(-1); }},
    {"koordinator-most", []() -> MadeShareRule { return std::make_unique<const Koordinator>(1); }},
}};

}  // namespace

std::vector<ShareRule::Card> ShareRule::CardsOf(const Node& node) {
  std::vector<Card> cards;
  for (std::size_t g = 0; g < node.gpus().size(); ++g) {
    Card card;
    card.index = static_cast<int>(g);
    const auto all_mib = static_cast<double>(node.spec().gpus[g].memory_mib);
    card.free_mib = static_cast<double>(node.gpus()[g].memory_mib);
    card.compute = 1 - static_cast<double>(node.gpus()[g].milli) / kMilliPerGpu;
    card.memory = all_mib > 0 ? 1 - card.free_mib / all_mib : 0;
    cards.push_back(card);
  }
  for (const auto& pod : node.pods()) {
    for (const DeviceGrant& grant : pod->placement.grants) {
      cards.at(static_cast<std::size_t>(grant.gpu)).pods += 1;
    }
  }
  return cards;
}

std::optional<Placement> ShareRule::Choose(const Snapshot& snapshot,
                                           const RequestShape& shape) const {
  std::optional<Placement> best;
  double best_value = 0;
  RequestShape of_each = shape;
  if (!shape.is_share()) of_each.gpus = GpuShare{kMilliPerGpu, 0};
  const auto& ask = std::get<GpuShare>(of_each.gpus);
  const auto count = static_cast<std::size_t>(shape.gpu_count());
  for (NodeIndex n = 0; n < snapshot.size(); ++n) {
    const Node& node = snapshot.node(n);
    if (FirstObjection(node, shape) != Reason::kFits) continue;
    const std::vector<Card> all = CardsOf(node);
    std::vector<Card> given;  // first all that have room
    DeviceChoice choice{0, ask.milli, ask.memory_mib};
    for (Card card : all) {
      const std::optional<DeviceChoice> part = ShareOn(node, card.index, of_each);
      if (!part || !HasFree(node, card.index, *part, of_each)) continue;
      if (!shape.is_share() && !IsIdle(node, card.index)) continue;
      const auto g = static_cast<std::size_t>(card.index);
      card.compute += static_cast<double>(part->milli) / kMilliPerGpu;
      card.memory += static_cast<double>(part->memory_mib) /
                     static_cast<double>(node.spec().gpus[g].memory_mib);
      given.push_back(card);
    }
    std::ranges::stable_sort(given, std::greater<>(),
                             [this](const Card& card) { return OfCard(card); });
    given.resize(count);
    for (const Card& card : given) choice.gpus |= GpuBit(card.index);
    const double value = OfNode(given, all);
    if (best && value <= best_value) continue;
    best = PlacementFor(node, shape, choice);
    best_value = value;
  }
  return best;
}

std::vector<std::string_view> ShareRuleNames() {
  std::vector<std::string_view> names;
  for (const NamedShareRule& rule : kRules) names.push_back(rule.name);
  return names;
}

Result<std::unique_ptr<const ShareRule>> MakeShareRule(const std::string& name) {
  const auto found = std::ranges::find(kRules, name, &NamedShareRule::name);
  if (found != kRules.end()) return found->make();
  return Invalid("policy: want berth, fluid, " + Join(ShareRuleNames(), ", ") + ", got \"" + name +
                 "\"");
}

}  // namespace berth::replay
