// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/model_settings.h"

#include <array>
#include <charconv>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/file.h"
#include "config/config.h"
#include "config/load.h"
#include "config/parse_yaml.h"

namespace berth::replay {
namespace {

// visit(mapping, key, least, most, value, meaning) for each of them.
template <class Settings, class Visit>
void ForEach(Settings&& model, const Visit& visit) {
  const auto waste = [&](const char* key, double low, double high, auto& value,
                         const char* meaning) {
    visit("expectedWaste", key, low, high, value, meaning);
  };
  const auto learning = [&](const char* key, auto& value, const char* meaning) {
    visit("learning", key, 1, 1e9, value, meaning);
  };
  learning("halfLifePods", model.learning.half_life_pods,
           "number of later pods after which an observed pod counts half");
  learning("longestEpochPods", model.learning.longest_epoch_pods,
           "maximum number of pods between two rebuilds of the scorers");
  waste("fills", 1, 256, model.waste.fills,
        "number of simulated fillings of a node; their mean is its score, and each takes time");
  waste("patience", 1, 400, model.waste.patience,
        "number of GPU pods in a row that do not fit before a filling ends");
  waste("settledPatience", 1, 400, model.waste.settled_patience,
        "`patience` in a cluster where pods end as fast as they arrive");
  waste("optimismGpus", 0, 100, model.waste.optimism,
        "a filling that wastes this many GPUs less counts e times as much; 0: all count the same");
  waste("coverage", 0.01, 1, model.waste.coverage,
        "fraction of the mix to simulate, most frequent kinds of pods first");
  waste("fragmentation", 0, 100, model.waste.fragmentation,
        "weight of a GPU that the next pod cannot use, relative to one that stays idle for good");
  waste("settledFragmentation", 0, 100, model.waste.settled_fragmentation,
        "`fragmentation` in a cluster where pods end as fast as they arrive");
  waste("scarcityExponent", 0.1, 20, model.waste.scarcity_exponent,
        "steepness of the price of room for several GPUs on one node");
  waste("scarcityLimitGpus", 0, 100, model.waste.scarcity_limit,
        "maximum price of one GPU of such room");
  waste("sharePriceGpus", 0, 100, model.waste.share_price,
        "price of room for a large share when demand equals supply, where pods say how much GPU "
        "memory "
        "their shares need");
  waste("modelPriceGpus", 0, 100, model.waste.model_price,
        "price of a GPU of a model when demand for the model equals its free GPUs");
  waste("bestFitGpus", 0, 100, model.waste.best_fit,
        "extra cost of an empty node of the largest kind, compared with a full one");
  waste("settledBestFitGpus", 0, 100, model.waste.settled_best_fit,
        "`bestFitGpus` in a cluster where pods end as fast as they arrive");
}

// The shortest text that reads back to the same number.
std::string Shortest(double number) {
  std::array<char, 32> digits;
  const auto [end, code] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return code == std::errc() ? std::string(digits.data(), end) : "0";
}

void ReadMapping(YamlReader& yaml, std::string_view of, ModelSettings& model) {
  ForEach(model, [&](std::string_view mapping, const char* key, double low, double high,
                     auto& value, const char*) {
    if (mapping != of) return;
    if constexpr (std::is_integral_v<std::remove_reference_t<decltype(value)>>) {
      yaml.Integer(key, static_cast<std::int64_t>(low), static_cast<std::int64_t>(high), value);
    } else {
      yaml.Number(key, low, high, value);
    }
  });
}

}  // namespace

Result<ReplayConfig> LoadReplayConfig(const std::string& text, std::string_view origin) {
  ReplayConfig read;
  BERTH_TRY(read.config, LoadConfig(text, origin, [&read](YamlReader& yaml) {
              for (const char* key : {"learning", "expectedWaste"}) {
                yaml.Mapping(key, [&](YamlReader& inner) { ReadMapping(inner, key, read.model); });
              }
            }));
  return read;
}

Result<ReplayConfig> LoadReplayConfigFile(const std::string& path) {
  BERTH_TRY(const std::string text, ReadFile(path));
  return LoadReplayConfig(text, path);
}

std::string PrintReplayConfig(const ReplayConfig& config) {
  std::vector<std::string> defaults;
  ForEach(ModelSettings(), [&](std::string_view, const char*, double, double, const auto& value,
                               const char*) { defaults.push_back(Shortest(value)); });
  std::string text = PrintConfig(config.config);
  std::string_view last;
  std::size_t at = 0;
  ForEach(config.model, [&](std::string_view mapping, const char* key, double, double,
                            const auto& value, const char*) {
    const std::string number = Shortest(value);
    if (number == defaults[at++]) return;
    if (mapping != std::exchange(last, mapping)) text.append(mapping).append(":\n");
    text.append("  ").append(key).append(": ").append(number).append("\n");
  });
  return text;
}

std::string ModelSettingsTable() {
  std::string table;
  const ModelSettings defaults;
  ForEach(defaults, [&](std::string_view mapping, const char* key, double low, double high,
                        const auto& value, const char* meaning) {
    const bool whole = std::is_integral_v<std::remove_cvref_t<decltype(value)>>;
    const auto text = [](double number) { return number == 1e9 ? "1000000000" : Shortest(number); };
    table.append("| `").append(mapping).append(".").append(key).append("` | ");
    table.append(whole ? "" : "number, ").append(text(low)).append(" to ").append(text(high));
    table.append(" | `").append(Shortest(value)).append("` | ").append(meaning).append(" |\n");
  });
  return table;
}

}  // namespace berth::replay
