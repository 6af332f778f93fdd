// SPDX-License-Identifier: Apache-2.0
#include "bench/machine_files/topo_text.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "bench/machine_files/topo_text_line.h"

namespace berth {
namespace {

using topo_text::Cell;
using topo_text::Header;
using topo_text::Line;

class Parser {
 public:
  Result<LinkMatrix> Parse(std::string_view text) {
    int number = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      BERTH_TRY_STATUS(ReadLine(topo_text::CleanLine(text.substr(at, end - at), ++number)));
      at = end + 1;
    }
    if (!header_) return Invalid("want a line with GPU0 GPU1 ..., got none");
    if (rows_ == 0) return Invalid("want a row of each GPU below line " + Number(header_->line));
    BERTH_TRY_STATUS(CompleteBySymmetry(matrix_, row_lines_));
    WarnOfMissingRows();
    matrix_.warnings.insert(matrix_.warnings.begin(), odd_.begin(), odd_.end());
    return std::move(matrix_);
  }

 private:
  static std::string Number(int number) { return std::to_string(number); }

  static bool IsBusId(std::string_view word) {  // "0000:0c:00.0"
    return word.size() >= 12 && word[4] == ':' && word[7] == ':' && word[10] == '.';
  }

  // amd-smi names GPUs by their bus IDs, in several tables.
  Line WithNames(Line line) {
    by_bus_ = by_bus_ || line.text.find("LINK TYPE TABLE") != std::string::npos;
    const std::vector<std::string_view> words = topo_text::Words(line.text);
    if (!by_bus_ || words.empty() || !IsBusId(words[0])) return line;
    std::string text;
    if (buses_.empty()) {
      buses_.assign(words.begin(), words.end());
      for (std::size_t gpu = 0; gpu < buses_.size(); ++gpu) text += " GPU" + std::to_string(gpu);
    } else if (words.size() > 1 && IsBusId(words[1])) {
      second_table_ = true;
    } else if (const auto row = std::ranges::find(buses_, words[0]); row != buses_.end()) {
      text = "GPU" + std::to_string(row - buses_.begin());
      for (std::size_t i = 1; i < words.size(); ++i) text.append(" ").append(words[i]);
    }
    line.text = std::move(text);
    return line;
  }

  Status ReadLine(Line read) {
    const Line line = WithNames(std::move(read));
    if (auto header = topo_text::ReadHeader(line)) {
      if (header_) {
        second_table_ = rows_ > 0;  // `topo -p2p`: what the matrix promises and the driver refuses
        return {};
      }
      return Begin(line, *std::move(header));
    }
    if (!header_) return {};
    if (second_table_) {
      NotePeerAccess(line);
      return {};
    }
    return header_->markdown ? ReadMarkdownRow(line) : ReadRow(line);
  }

  Status Begin(const Line& line, Header header) {
    auto matrix = MakeLinkMatrix(header.gpus, header.nics);
    if (!matrix)
      return tl::unexpected(std::move(matrix).error().Within("line " + Number(line.number)));
    matrix_ = *std::move(matrix);
    row_lines_.assign(static_cast<std::size_t>(matrix_.device_count()), 0);
    if (header.glued) odd_.insert("glued-header");
    if (header.markdown) odd_.insert("markdown-table");
    NoteOdd(line);
    header_ = std::move(header);
    header_->line = line.number;
    return {};
  }

  void NoteOdd(const Line& line) {
    if (line.had_escape) odd_.insert("ansi");
    if (line.had_prefix) odd_.insert("comment-prefix");
  }

  // The device whose row a line is, and where its cells begin; -1 for other text.
  int DeviceOf(std::string_view text, std::size_t& at) const {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return -1;
    int best = -1;
    for (int device = 0; device < matrix_.device_count(); ++device) {
      const std::string& name = matrix_.name(device);
      if (!text.substr(begin).starts_with(name)) continue;
      if (best < 0 || name.size() > matrix_.name(best).size()) best = device;
    }
    if (best >= 0) at = begin + matrix_.name(best).size();
    return best;
  }

  Status ReadRow(const Line& line) {
    std::size_t at = 0;
    const int row = DeviceOf(line.text, at);
    if (row < 0) return RefuseUnknownRow(line);
    const std::string_view rest = std::string_view(line.text).substr(at);
    if (rest.starts_with(':')) {
      ReadLegend(row, rest.substr(1));
      return {};
    }
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return RefuseUnknownRow(line);
    BERTH_TRY_STATUS(BeginRow(line, row));
    for (int column = 0; column < matrix_.device_count(); ++column) {
      const Cell cell = topo_text::ReadCell(line.text, at);
      BERTH_TRY_STATUS(Store(line, row, column, cell));
      if (cell.glued && column + 1 < matrix_.device_count()) odd_.insert("glued-cells");
    }
    if (row >= matrix_.gpu_count()) return {};
    return StoreAffinity(line, row, topo_text::ReadAffinity(*header_, line.text, at));
  }

  Status ReadMarkdownRow(const Line& line) {
    const std::vector<std::string> fields = topo_text::MarkdownFields(line.text);
    if (fields.size() != header_->columns.size()) return {};
    std::size_t ignored = 0;
    int row = -1;
    for (std::size_t i = 0; i < fields.size() && row < 0; ++i) {
      if (header_->columns[i] == Header::kRowName) row = DeviceOf(fields[i], ignored);
    }
    if (row < 0) return {};
    BERTH_TRY_STATUS(BeginRow(line, row));
    topo_text::Affinity affinity;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const int column = header_->columns[i];
      if (column == Header::kCpuAffinity) affinity.cpu = fields[i];
      if (column == Header::kNumaAffinity) affinity.numa = fields[i];
      if (column < 0) continue;
      std::size_t at = 0;
      BERTH_TRY_STATUS(Store(line, row, column, topo_text::ReadCell(fields[i], at)));
    }
    if (row >= matrix_.gpu_count()) return {};
    return StoreAffinity(line, row, affinity);
  }

  Status BeginRow(const Line& line, int row) {
    int& row_line = row_lines_[static_cast<std::size_t>(row)];
    if (row_line != 0) {
      return Invalid("line " + Number(line.number) + ": row " + matrix_.name(row) +
                     " is there twice, first in line " + Number(row_line));
    }
    row_line = line.number;
    if (row < matrix_.gpu_count()) ++rows_;
    NoteOdd(line);
    return {};
  }

  Status RefuseUnknownRow(const Line& line) const {
    const std::string_view name = topo_text::DeviceNameAt(line.text);
    if (!name.starts_with("GPU")) return {};
    return Invalid("line " + Number(line.number) + ": row " + std::string(name) +
                   " is none of the " + Number(matrix_.device_count()) + " devices of line " +
                   Number(header_->line));
  }

  Status Store(const Line& line, int row, int column, const Cell& cell) {
    const std::string where = "line " + Number(line.number) + ", " + matrix_.name(row) + " to " +
                              matrix_.name(column) + ": want ";
    if (!cell.valid) {
      const std::string found = cell.text.empty() ? "nothing" : "\"" + cell.text + "\"";
      return Invalid(where + "X, NV#, PIX, PXB, PHB, NODE, SYS, SOC, XGMI, XL or HCCS, got " +
                     found);
    }
    if (cell.self != (row == column)) {
      return Invalid(where + (cell.self ? "a link" : "X") + ", got \"" + cell.text + "\"");
    }
    matrix_.link(row, column) = cell.link;
    return {};
  }

  Status StoreAffinity(const Line& line, int row, const topo_text::Affinity& affinity) {
    for (const std::string* text : {&affinity.cpu, &affinity.numa}) {
      if (*text == "N/A" || text->find_first_not_of("0123456789,-") == std::string::npos) continue;
      return Invalid("line " + Number(line.number) + ", affinity of " + matrix_.name(row) +
                     ": want a list such as 0-19,40-59, got \"" + *text + "\"");
    }
    matrix_.cpu_affinity[static_cast<std::size_t>(row)] = affinity.cpu;
    matrix_.numa_affinity[static_cast<std::size_t>(row)] = affinity.numa;
    return {};
  }

  void ReadLegend(int device, std::string_view text) {
    if (device < matrix_.gpu_count()) return;
    matrix_.nic_devices.resize(matrix_.nics.size());
    matrix_.nic_devices[static_cast<std::size_t>(device - matrix_.gpu_count())] =
        topo_text::FirstWord(text);
  }

  void NotePeerAccess(const Line& line) {
    std::size_t at = 0;
    const int row = DeviceOf(line.text, at);
    if (row < 0 || refused_peer_) return;
    for (const std::string_view word : topo_text::Words(std::string_view(line.text).substr(at))) {
      if (word != "GNS" && word != "CNS" && word != "TNS" && word != "NS" && word != "DR") continue;
      matrix_.warnings.push_back("no-peer-access: " + std::string(word) + " in the p2p row of " +
                                 matrix_.name(row));
      refused_peer_ = true;
      return;
    }
  }

  void WarnOfMissingRows() {
    std::string names;
    for (int gpu = 0; gpu < matrix_.gpu_count(); ++gpu) {
      if (row_lines_[static_cast<std::size_t>(gpu)] == 0) names += " " + matrix_.name(gpu);
    }
    if (!names.empty()) matrix_.warnings.push_back("rows-missing:" + names);
  }

  std::optional<Header> header_;
  LinkMatrix matrix_;
  std::vector<int> row_lines_;  // per device, 0 before its row
  std::set<std::string> odd_;
  std::vector<std::string> buses_;  // of GPUs, where a table has them for names
  int rows_ = 0;                    // of GPUs
  bool second_table_ = false, refused_peer_ = false, by_bus_ = false;
};

}  // namespace

Result<LinkMatrix> ParseTopoText(std::string_view text) {
  if (text.size() > kMaxTopologyBytes) {
    return Invalid("want at most " + std::to_string(kMaxTopologyBytes) + " bytes, got " +
                   std::to_string(text.size()));
  }
  return Parser().Parse(text);
}

}  // namespace berth
