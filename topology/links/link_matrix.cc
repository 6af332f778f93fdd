// SPDX-License-Identifier: Apache-2.0
#include "topology/links/link_matrix.h"

#include <array>
#include <utility>

#include "base/text.h"

namespace berth {
namespace {

constexpr std::array<std::pair<std::string_view, LinkType>, 9> kRelations = {{
    {"SYS", LinkType::kSys},
    {"NODE", LinkType::kNode},
    {"PHB", LinkType::kPhb},
    {"PXB", LinkType::kPxb},
    {"PIX", LinkType::kPix},
    {"PSB", LinkType::kBoard},
    {"?", LinkType::kUnknown},
    {"SOC", LinkType::kSys},
    {"PCIE", LinkType::kSys},  // rocm-smi, which says no more: the slowest that it can be
}};

std::string TooMany(std::string_view what, std::size_t most, std::size_t found) {
  return "want at most " + std::to_string(most) + " " + std::string(what) + ", got " +
         std::to_string(found);
}

}  // namespace

std::string LinkText(const Link& link) {
  if (link.fabric == LinkType::kNvlink) return "NV" + std::to_string(link.fabric_links);
  if (link.fabric == LinkType::kXgmi) return "XGMI";
  if (link.fabric == LinkType::kHccs) return "HCCS";
  if (link.fabric == LinkType::kXelink) return "XL";
  for (const auto& [name, type] : kRelations) {
    if (type == link.pcie) return std::string(name);
  }
  return "?";
}

std::optional<LinkType> ParsePcieRelation(std::string_view text) {
  for (const auto& [name, type] : kRelations) {
    if (text == name) return type;
  }
  return std::nullopt;
}

const std::string& LinkMatrix::name(int device) const {
  const auto at = static_cast<std::size_t>(device);
  return at < gpus.size() ? gpus[at] : nics[at - gpus.size()];
}

Result<LinkMatrix> MakeLinkMatrix(std::vector<std::string> gpus, std::vector<std::string> nics) {
  if (gpus.empty()) return Invalid("want at least one GPU, got none");
  if (gpus.size() > kMaxGpus) return Invalid(TooMany("GPUs", kMaxGpus, gpus.size()));
  if (nics.size() > kMaxNics) return Invalid(TooMany("NICs", kMaxNics, nics.size()));
  LinkMatrix matrix;
  matrix.cpu_affinity.resize(gpus.size());
  matrix.numa_affinity.resize(gpus.size());
  matrix.gpus = std::move(gpus);
  matrix.nics = std::move(nics);
  const auto side = static_cast<std::size_t>(matrix.device_count());
  matrix.cells.resize(side * side);
  return matrix;
}

Status CompleteBySymmetry(LinkMatrix& matrix, std::span<const int> row_lines) {
  for (int a = 0; a < matrix.device_count(); ++a) {
    for (int b = 0; b < a; ++b) {
      Link& lower = matrix.link(a, b);
      Link& upper = matrix.link(b, a);
      if (!lower.known()) lower = upper;
      if (!upper.known()) upper = lower;
      if (lower == upper) continue;
      const int line = row_lines.empty() ? 0 : row_lines[static_cast<std::size_t>(a)];
      return Invalid((line > 0 ? "line " + std::to_string(line) + ", " : "") + matrix.name(a) +
                     " to " + matrix.name(b) + ": want " + LinkText(upper) + ", as " +
                     matrix.name(b) + " to " + matrix.name(a) + " is, got " + LinkText(lower));
    }
  }
  return {};
}

std::optional<int> NumaNodeOf(std::string_view numa_affinity) {
  const std::string_view first = numa_affinity.substr(0, numa_affinity.find(','));
  const auto node = ParseInt(first, 0, 1'000'000);
  if (!node) return std::nullopt;
  return static_cast<int>(*node);
}

}  // namespace berth
