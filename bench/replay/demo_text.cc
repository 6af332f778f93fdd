// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/demo_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "base/text.h"

namespace berth::replay {
namespace {

struct Known {
  std::string_view policy;
  std::string_view meaning;  // in the table
  std::string_view subject;  // in the sentence
};

constexpr std::array<Known, 4> kKnown = {{
    {"expected-waste", "Berth's default", "Berth's default"},
    {"fragmentation-gradient", "FGD, USENIX ATC'23", "FGD"},
    {"kube-scheduler", "its default: spreads pods", "kube-scheduler's default"},
    {"most-allocated", "kube-scheduler, told to pack", "MostAllocated"},
}};

constexpr double kWidestBar = 40;

Known About(const std::string& policy) {
  const auto* const known = std::ranges::find(kKnown, policy, &Known::policy);
  return known == kKnown.end() ? Known{policy, "", policy} : *known;
}

std::string Repeated(const std::string& bar, double times) {
  std::string text;
  for (long i = std::lround(times); i > 0; --i) text += bar;
  return text;
}

std::string IdleText(const DemoRow& row) { return WithCommas(std::llround(row.idle_gpus)); }

}  // namespace

std::string WithCommas(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string DemoTable(const DemoRuns& runs, const std::string& bar) {
  std::vector<DemoRow> rows = runs.rows;
  std::ranges::stable_sort(rows, {}, &DemoRow::idle_gpus);
  const double most = rows.empty() ? 0 : rows.back().idle_gpus;
  const auto line = [](const auto&... cells) {
    char text[160];
    std::snprintf(text, sizeof text, "%-24s%-30s%8s%9s%7s  ", cells...);
    return std::string(text);
  };
  std::string table = line("", "", "pods", "pods", "GPUs") + "\n" +
                      line("policy", "", "placed", "refused", "idle") + "\n";
  for (const DemoRow& row : rows) {
    const std::string placed = WithCommas(row.placed), refused = WithCommas(row.refused);
    table += line(row.policy.c_str(), About(row.policy).meaning.data(), placed.c_str(),
                  refused.c_str(), IdleText(row).c_str()) +
             Repeated(bar, most > 0 ? kWidestBar * row.idle_gpus / most : 0) + "\n";
  }
  return table;
}

std::string DemoSentence(const DemoRuns& runs) {
  const DemoRow& own = runs.rows.front();
  const std::vector<DemoRow> others(runs.rows.begin() + 1, runs.rows.end());
  std::string sentence = "Of " + WithCommas(runs.gpus) + " GPUs " + IdleText(own) + " stay idle";
  if (others.empty()) return sentence + ".";
  sentence += "; " + std::string(About(others.front().policy).subject) + " leaves " +
              IdleText(others.front());
  for (std::size_t i = 1; i < others.size(); ++i) {
    sentence += ", " + std::string(About(others[i].policy).subject) + " " + IdleText(others[i]);
  }
  return sentence + ".";
}

}  // namespace berth::replay
