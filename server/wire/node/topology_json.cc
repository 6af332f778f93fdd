// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/topology_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "topology/links/wiring.h"

namespace berth::wire {
namespace {

constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
constexpr int kVersion = 1;

// A list may be nested so deeply that printing it would overflow the stack.
std::string Shown(const Json& json) {
  if (json.is_structured()) return json.type_name();
  return JsonText(json).substr(0, 40);
}

std::vector<std::string> Names(std::string_view prefix, std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(std::string(prefix) + std::to_string(i));
  return names;
}

Result<LinkMatrix> MatrixOfGpus(const Json& json, std::vector<std::string> nics) {
  const auto found = json.find("gpus");
  if (found == json.end() || !found->is_number_integer()) {
    return Invalid("gpus: want their number, got " +
                   (found == json.end() ? "nothing" : Shown(*found)));
  }
  // A double keeps what does not fit into 64 bits out of range.
  const double count = found->get<double>();
  if (count < 1 || count > kMaxGpus) {
    return Invalid("gpus: want 1.." + std::to_string(kMaxGpus) + ", got " + Shown(*found));
  }
  return MakeLinkMatrix(Names("GPU", static_cast<std::int64_t>(count)), std::move(nics));
}

// Calls read(row, column, cell, path) for each cell of a square list of lists.
template <class Read>
Status ForEachCell(const Json& json, const char* key, int gpus, Read read) {
  const auto found = json.find(key);
  if (found == json.end()) return {};
  const auto side = static_cast<std::size_t>(gpus);
  const auto is_list = [side](const Json& list) { return list.is_array() && list.size() == side; };
  if (!is_list(*found))
    return Invalid(std::string(key) + ": want " + std::to_string(gpus) + " rows");
  for (std::size_t a = 0; a < side; ++a) {
    const std::string row = std::string(key) + "[" + std::to_string(a) + "]";
    if (!is_list((*found)[a])) return Invalid(row + ": want " + std::to_string(gpus) + " cells");
    for (std::size_t b = 0; b < side; ++b) {
      const std::string path = row + "[" + std::to_string(b) + "]";
      BERTH_TRY_STATUS(read(static_cast<int>(a), static_cast<int>(b), (*found)[a][b], path));
    }
  }
  return {};
}

Result<LinkMatrix> MatrixOfPairs(const Json& json) {
  BERTH_TRY(LinkMatrix matrix, MatrixOfGpus(json, {}));
  for (const auto& [key, value] : json.items()) {
    if (key == "gpus" || key == "pcie" || key == "nvlinks" || key == "note") continue;
    return Invalid(key.substr(0, 40) + ": unknown key");
  }
  if (!json.contains("pcie") && !json.contains("nvlinks")) return Invalid("want pcie or nvlinks");
  BERTH_TRY_STATUS(ForEachCell(
      json, "pcie", matrix.gpu_count(),
      [&matrix](int a, int b, const Json& cell, const std::string& path) -> Status {
        if (a == b || cell.is_null()) return {};  // null: hidden by the NVLinks
        const std::string* const text = cell.get_ptr<const std::string*>();
        const auto relation = text == nullptr ? std::nullopt : ParsePcieRelation(*text);
        if (!relation) {
          return Invalid(path + ": want PIX, PXB, PHB, NODE, SYS or null, got " + Shown(cell));
        }
        matrix.link(a, b).pcie = *relation;
        return {};
      }));
  BERTH_TRY_STATUS(ForEachCell(
      json, "nvlinks", matrix.gpu_count(),
      [&matrix](int a, int b, const Json& cell, const std::string& path) -> Status {
        const int most = a == b ? 0 : kMaxNvlinks;
        const double links = cell.is_number_integer() ? cell.get<double>() : -1;
        if (links < 0 || links > most) {
          return Invalid(path + ": want 0.." + std::to_string(most) + ", got " + Shown(cell));
        }
        if (links == 0) return {};
        matrix.link(a, b).fabric = LinkType::kNvlink;
        matrix.link(a, b).fabric_links = static_cast<std::uint8_t>(links);
        return {};
      }));
  BERTH_TRY_STATUS(CompleteBySymmetry(matrix));
  return matrix;
}

// "SYS+NV2": both are known.
std::string CellText(const Link& link) {
  const std::string text = LinkText(link);
  const bool counted = link.fabric >= LinkType::kHccs && link.fabric != LinkType::kNvlink;
  if (counted && link.fabric_links != 1) {
    return LinkText(Link{link.pcie, {}, 0}) + "+" + text + std::to_string(link.fabric_links);
  }
  if (link.fabric == LinkType::kUnknown || link.pcie == LinkType::kUnknown) return text;
  return LinkText(Link{link.pcie, {}, 0}) + "+" + text;
}

Result<Link> ParseCell(std::string_view text) {
  const auto wrong = [text] {
    return Invalid("want a link such as NV12, PIX or SYS+NV2, got \"" +
                   std::string(text.substr(0, 40)) + "\"");
  };
  Link link;
  if (text == LinkText(link)) return link;  // not printed: the rows of a matrix may be missing
  std::string_view fabric = text;
  const std::size_t plus = text.find('+');
  if (const auto pcie = ParsePcieRelation(text.substr(0, plus))) {
    link.pcie = *pcie;
    if (plus == std::string_view::npos) return link;
    fabric = text.substr(plus + 1);
  } else if (plus != std::string_view::npos) {
    return wrong();
  }
  constexpr std::array<std::pair<std::string_view, LinkType>, 4> kFabrics = {
      {{"NV", LinkType::kNvlink},
       {"HCCS", LinkType::kHccs},
       {"XGMI", LinkType::kXgmi},
       {"XL", LinkType::kXelink}}};
  const auto* const named = std::ranges::find_if(
      kFabrics, [fabric](const auto& known) { return fabric.starts_with(known.first); });
  if (named == kFabrics.end()) return wrong();
  link.fabric = named->second;
  const bool nvlink = link.fabric == LinkType::kNvlink;
  const std::string_view count = fabric.substr(named->first.size());
  link.fabric_links = 1;
  if (!nvlink && count.empty()) return link;
  const auto links = ParseInt(count, 1, kMaxNvlinks);
  if (!links) return wrong();
  link.fabric_links = static_cast<std::uint8_t>(*links);
  return link;
}

// Numbers the kinds of links that occur.
class Cells {
 public:
  char DigitOf(const Link& link) {
    const std::string text = CellText(link);
    const auto found = std::ranges::find(texts_, text);
    const auto index = static_cast<std::size_t>(found - texts_.begin());
    if (found == texts_.end()) texts_.push_back(text);
    return index < kDigits.size() ? kDigits[index] : '!';
  }
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
};

bool AllEmpty(const std::vector<std::string>& texts) {
  return std::ranges::all_of(texts, [](const std::string& text) { return text.empty(); });
}

Status ReadTexts(const Json& json, const char* key, std::size_t count,
                 std::vector<std::string>& texts) {
  const auto found = json.find(key);
  if (found == json.end()) return {};
  if (!found->is_array() || (count > 0 && found->size() != count)) {
    return Invalid(std::string(key) + ": want a list" +
                   (count > 0 ? " of " + std::to_string(count) : std::string()));
  }
  texts.clear();
  for (const Json& text : *found) {
    if (!text.is_string()) return Invalid(std::string(key) + ": want texts, got " + Shown(text));
    texts.push_back(text.get<std::string>());
  }
  return {};
}

// Rows of digits into cells: columns_of(row) are the devices of a row's digits.
template <class ColumnsOf>
Status ReadDigits(const Json& json, const char* key, const std::vector<Link>& cells,
                  LinkMatrix& matrix, ColumnsOf columns_of) {
  const auto found = json.find(key);
  const std::string* const text =
      found == json.end() ? nullptr : found->get_ptr<const std::string*>();
  if (text == nullptr) return Invalid(std::string(key) + ": want rows of digits");
  std::size_t at = 0;
  for (int row = 0; row < matrix.gpu_count(); ++row) {
    const auto [first, last] = columns_of(row);
    for (int column = first; column < last; ++column, ++at) {
      const std::size_t cell = at < text->size() ? kDigits.find((*text)[at]) : std::string::npos;
      if (cell >= cells.size()) {
        return Invalid(std::string(key) + ": " + matrix.name(row) + " to " + matrix.name(column) +
                       ": want a digit that counts in cells");
      }
      matrix.link(row, column) = cells[cell];
    }
    if (at < text->size() && (*text)[at] == '/') ++at;
  }
  if (at != text->size()) return Invalid(std::string(key) + ": want no more than the GPUs have");
  return {};
}

Result<LinkMatrix> MatrixOfAnnotation(const Json& json) {
  if (json["version"] != kVersion) return Invalid("version: want 1, got " + Shown(json["version"]));
  std::vector<std::string> nics, texts;
  BERTH_TRY_STATUS(ReadTexts(json, "nics", 0, nics));
  BERTH_TRY_STATUS(ReadTexts(json, "cells", 0, texts));
  BERTH_TRY(LinkMatrix matrix, MatrixOfGpus(json, std::move(nics)));
  std::vector<Link> cells;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    BERTH_TRY(const Link cell, Within(ParseCell(texts[i]), "cells[" + std::to_string(i) + "]"));
    cells.push_back(cell);
  }
  const int gpus = matrix.gpu_count();
  BERTH_TRY_STATUS(ReadDigits(json, "links", cells, matrix,
                              [gpus](int row) { return std::pair(row + 1, gpus); }));
  if (!matrix.nics.empty()) {
    const int devices = matrix.device_count();
    BERTH_TRY_STATUS(ReadDigits(json, "nic_links", cells, matrix,
                                [gpus, devices](int) { return std::pair(gpus, devices); }));
  }
  BERTH_TRY_STATUS(ReadTexts(json, "numa", matrix.gpus.size(), matrix.numa_affinity));
  BERTH_TRY_STATUS(ReadTexts(json, "cpus", matrix.gpus.size(), matrix.cpu_affinity));
  BERTH_TRY_STATUS(CompleteBySymmetry(matrix));
  return matrix;
}

Status CheckCount(const LinkMatrix& matrix, int gpus) {
  if (matrix.gpu_count() == gpus) return {};
  return Invalid("want the node's " + std::to_string(gpus) + " GPUs, got " +
                 std::to_string(matrix.gpu_count()));
}

}  // namespace

Result<LinkMatrix> ReadTopology(const Json& json) {
  return json.contains("version") ? MatrixOfAnnotation(json) : MatrixOfPairs(json);
}

Result<std::string> TopologyAnnotation(const LinkMatrix& matrix) {
  Cells cells;
  std::string links, nic_links;
  for (int a = 0; a < matrix.gpu_count(); ++a) {
    for (int b = a + 1; b < matrix.gpu_count(); ++b) links += cells.DigitOf(matrix.link(a, b));
    if (a + 2 < matrix.gpu_count()) links += '/';
    if (a > 0) nic_links += '/';
    for (int nic = 0; nic < static_cast<int>(matrix.nics.size()); ++nic) {
      nic_links += cells.DigitOf(matrix.gpu_nic(a, nic));
    }
  }
  if (cells.texts().size() > kDigits.size()) {
    return Invalid("want links of at most 36 kinds, got " + std::to_string(cells.texts().size()));
  }
  Json json = {{"version", kVersion},
               {"gpus", matrix.gpu_count()},
               {"cells", cells.texts()},
               {"links", links}};
  if (!AllEmpty(matrix.numa_affinity)) json["numa"] = matrix.numa_affinity;
  if (!AllEmpty(matrix.cpu_affinity)) json["cpus"] = matrix.cpu_affinity;
  if (!matrix.nics.empty()) {
    json["nics"] = matrix.nic_devices.empty() ? matrix.nics : matrix.nic_devices;
    json["nic_links"] = nic_links;
  }
  return JsonText(json);
}

Result<LinkMatrix> ParseTopologyAnnotation(std::string_view text) {
  if (text.size() > kMaxTopologyBytes) {
    return Invalid("want at most " + std::to_string(kMaxTopologyBytes) + " bytes, got " +
                   std::to_string(text.size()));
  }
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Invalid("want JSON, got something else");
  if (!json.is_object()) return Invalid("want a JSON object");
  if (!json.contains("version")) return Invalid("version: want 1, got nothing");
  return MatrixOfAnnotation(json);
}

GpuLinks CatalogueLinks(std::string_view product, int gpus, LinkLibrary& library) {
  auto matrix = LinksOfProduct(product, gpus);
  if (!matrix) return {};
  return library.LinksOf(*std::move(matrix), product,
                         {LinkSource::kCatalogue, std::string(kCatalogueSource)});
}

NodeLinks ReadNodeLinks(const NodeReadings& readings, std::string_view product, int gpus,
                        LinkLibrary& library) {
  NodeLinks found;
  if (gpus == 0) return found;
  for (const auto& reading : readings) {
    std::optional<AnnouncedLinks> said = reading->Links();
    if (!said) continue;
    const Status fits =
        said->matrix ? CheckCount(*said->matrix, gpus) : tl::unexpected(said->matrix.error());
    if (fits) {
      found.links = library.LinksOf(*std::move(said->matrix), product,
                                    {LinkSource::kNode, std::string(said->annotation)});
      found.uuids = std::move(said->uuids);
      return found;
    }
    AddFact(found.problem,
            "annotation " + std::string(said->annotation) + ": " + fits.error().message);
  }
  found.links = CatalogueLinks(product, gpus, library);
  return found;
}

}  // namespace berth::wire
