// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/hami/hami_links.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "server/dialects/hami/hami_mig.h"
#include "topology/links/product_links.h"

namespace berth::dialects {
namespace {

using wire::Json;

// Want a list of at most kMaxGpus objects.
Status CheckList(const Json& json) {
  if (!json.is_array() || json.size() > kMaxGpus) {
    return Invalid("want a JSON list of at most " + std::to_string(kMaxGpus) + " GPUs");
  }
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (!json[i].is_object()) return Invalid("[" + std::to_string(i) + "]: want an object");
  }
  return {};
}

std::optional<std::string> TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

// 0 where it is left out; nullopt for what is no whole number in range.
std::optional<int> NumberIn(const Json& object, const char* key, int most) {
  const auto found = object.find(key);
  if (found == object.end()) return 0;
  const double number = found->is_number_integer() ? found->get<double>() : -1;
  if (number < 0 || number > most) return std::nullopt;
  return static_cast<int>(number);
}

struct Registered {
  std::vector<std::string> uuids;  // by index
  std::vector<std::string> numa;   // the same
  std::map<std::string, int> index;
};

Result<Registered> ReadRegister(const Json& list) {
  BERTH_TRY_STATUS(CheckList(list));
  Registered gpus;
  gpus.uuids.resize(list.size());
  gpus.numa.resize(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = "[" + std::to_string(i) + "]";
    const auto uuid = TextOf(list[i], "id");
    if (!uuid || uuid->empty()) return Invalid(place + ".id: want a UUID");
    const auto index = NumberIn(list[i], "index", static_cast<int>(list.size()) - 1);
    if (!index || !gpus.uuids[static_cast<std::size_t>(*index)].empty()) {
      return Invalid(place + ".index: want each of 0.." + std::to_string(list.size() - 1) +
                     " once");
    }
    if (!gpus.index.emplace(*uuid, *index).second) return Invalid(place + ".id: is there twice");
    gpus.uuids[static_cast<std::size_t>(*index)] = *uuid;
    constexpr int kMostNumaNodes = 1023;  // Linux' MAX_NUMNODES
    if (const auto numa = NumberIn(list[i], "numa", kMostNumaNodes)) {
      gpus.numa[static_cast<std::size_t>(*index)] = std::to_string(*numa);
    }
  }
  return gpus;
}

// The scores of one GPU to all others.
Status ReadScores(const Json& scores, const Registered& gpus, int from, LinkMatrix& matrix) {
  if (!scores.is_object()) return Invalid(".score: want an object");
  for (std::size_t to = 0; to < gpus.uuids.size(); ++to) {
    if (static_cast<int>(to) == from) continue;
    const auto found = scores.find(gpus.uuids[to]);
    const bool whole = found != scores.end() && found->is_number_integer();
    const double number = whole ? found->get<double>() : -1;
    constexpr double kBeyond = 1e6;  // far above any score
    const auto link = number >= 0 && number < kBeyond
                          ? LinkOfNvidiaScore(static_cast<std::int64_t>(number))
                          : std::nullopt;
    if (!link) {
      return Invalid(".score." + gpus.uuids[to].substr(0, 60) +
                     ": want a PCIe relation of 0..60 in tens and 100 per NVLink");
    }
    matrix.link(from, static_cast<int>(to)) = *link;
  }
  return {};
}

Result<HamiLinks> ReadMatrix(std::string_view text, Registered gpus) {
  BERTH_TRY(const Json list, ParseHamiList(text));
  BERTH_TRY_STATUS(CheckList(list));
  if (list.size() != gpus.uuids.size()) {
    return Invalid("want the " + std::to_string(gpus.uuids.size()) + " GPUs of " +
                   std::string(kHamiRegisterAnnotation) + ", got " + std::to_string(list.size()));
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < list.size(); ++i) names.push_back("GPU" + std::to_string(i));
  BERTH_TRY(LinkMatrix matrix, MakeLinkMatrix(std::move(names), {}));
  std::vector<bool> seen(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = "[" + std::to_string(i) + "]";
    const auto known = gpus.index.find(TextOf(list[i], "uuid").value_or(""));
    if (known == gpus.index.end() || seen[static_cast<std::size_t>(known->second)]) {
      return Invalid(place + ".uuid: want each of the GPUs of " +
                     std::string(kHamiRegisterAnnotation) + " once");
    }
    seen[static_cast<std::size_t>(known->second)] = true;
    Status read = ReadScores(list[i].value("score", Json()), gpus, known->second, matrix);
    if (!read) return tl::unexpected(std::move(read).error().Within(place));
  }
  matrix.numa_affinity = std::move(gpus.numa);
  BERTH_TRY_STATUS(CompleteBySymmetry(matrix));
  return HamiLinks{std::move(matrix), std::move(gpus.uuids)};
}

}  // namespace

Result<HamiLinks> ParseHamiLinks(std::string_view scores, const Json& registered) {
  auto gpus = ReadRegister(registered);
  if (!gpus) return tl::unexpected(std::move(gpus).error().Within(kHamiRegisterAnnotation));
  return ReadMatrix(scores, *std::move(gpus));
}

}  // namespace berth::dialects
