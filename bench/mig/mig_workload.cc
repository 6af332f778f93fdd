// SPDX-License-Identifier: Apache-2.0
#include "bench/mig/mig_workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/file.h"
#include "base/random.h"

namespace berth::replay {
namespace {

struct NamedMix {
  std::string_view name;
  std::array<double, 6> shares;
};
constexpr std::array<NamedMix, 3> kMixes = {{{"skew-small", {.30, .25, .20, .10, .10, .05}},
                                             {"skew-big", {.05, .10, .10, .20, .25, .30}},
                                             {"bimodal", {.30, .15, .05, .05, .15, .30}}}};

std::vector<int> PlainRows(const MigProduct& product) {
  std::vector<int> rows;
  for (int row = 0; row < static_cast<int>(product.rows().size()); ++row) {
    const MigProfile& profile = product.row(row).profile;
    if (profile.extension == MigExtension::kNone) rows.push_back(row);
  }
  return rows;
}

Result<MigMix> MixFromJson(const MigProduct& product, const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || json.empty()) {
    return Invalid("want a JSON object such as {\"1g.5gb\": 3, \"7g.40gb\": 1}");
  }
  MigMix mix;
  for (const auto& [name, share] : json.items()) {
    const auto profile = ParseMigProfile(name);
    if (!profile) return tl::unexpected(profile.error());
    const auto row = product.RowOf(*profile);
    if (!row) return Invalid("want profiles of " + product.name() + ", got " + name);
    if (!share.is_number() || !(share.get<double>() > 0) || share.get<double>() > 1e6) {
      return Invalid(name + ": want a share above 0 and up to 1e6, got " + share.dump());
    }
    mix.emplace_back(*row, share.get<double>());
  }
  std::ranges::sort(mix);
  for (std::size_t i = 1; i < mix.size(); ++i) {
    if (mix[i].first != mix[i - 1].first) continue;
    const MigRow& row = product.row(mix[i].first);
    return Invalid(MigProfileName(row.profile) + ": is there under two names");
  }
  return mix;
}

}  // namespace

Result<MigMix> ReadMigMix(const MigProduct& product, const std::string& name) {
  const std::vector<int> rows = PlainRows(product);
  MigMix mix;
  if (name == "uniform") {
    for (const int row : rows) mix.emplace_back(row, 1.0);
    return mix;
  }
  const auto named = std::ranges::find(kMixes, name, &NamedMix::name);
  if (named == kMixes.end()) {
    BERTH_TRY(const std::string text, ReadFile(name));
    auto read = MixFromJson(product, text);
    if (!read) return tl::unexpected(std::move(read).error().Within(name));
    return read;
  }
  if (rows.size() != named->shares.size()) {
    return Invalid("want uniform or a file for " + product.name() + ", which has " +
                   std::to_string(rows.size()) + " profiles, got " + name + " for 6");
  }
  for (std::size_t i = 0; i < rows.size(); ++i) mix.emplace_back(rows[i], named->shares[i]);
  return mix;
}

Result<MigLifetimes> ParseMigLifetimes(std::string_view name) {
  if (name == "exponential") return MigLifetimes::kExponential;
  if (name == "heavy-tailed") return MigLifetimes::kHeavyTailed;
  return Invalid("want exponential or heavy-tailed, got \"" + std::string(name) + "\"");
}

std::vector<MigPod> DrawMigPods(const MigProduct& product, const MigMix& mix,
                                MigLifetimes lifetimes, double units_per_time, int arrivals,
                                std::uint64_t seed) {
  double shares = 0, units = 0;
  for (const auto& [row, share] : mix) {
    shares += share;
    units += share * product.row(row).memory_units;
  }
  const double rate = units_per_time * shares / units;
  Random random(seed);
  const auto exponential = [&random] { return -std::log(1 - random.Unit()); };
  const auto lognormal = [&random, &exponential] {
    constexpr double kSigma = 1.5;
    const double normal =
        std::sqrt(2 * exponential()) * std::cos(2 * std::numbers::pi * random.Unit());
    return std::exp(kSigma * normal - kSigma * kSigma / 2);
  };
  std::vector<MigPod> pods(static_cast<std::size_t>(arrivals));
  double now = 0;
  for (MigPod& pod : pods) {
    now += exponential() / rate;
    pod.arrives = now;
    double draw = random.Unit() * shares;
    for (const auto& [row, share] : mix) {
      pod.row = row;
      if ((draw -= share) < 0) break;
    }
    pod.lasts = lifetimes == MigLifetimes::kExponential ? exponential() : lognormal();
  }
  return pods;
}

}  // namespace berth::replay
