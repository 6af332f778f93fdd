// SPDX-License-Identifier: Apache-2.0
#include "bench/machine_files/machine_file.h"

#include <utility>

#include "base/file.h"
#include "bench/machine_files/nccl_xml.h"
#include "bench/machine_files/topo_text.h"
#include "server/wire/node/topology_json.h"

namespace berth {

Result<LinkMatrix> ParseTopologyFile(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) {
    return Invalid("want nvidia-smi topo -m, NCCL topology XML or JSON, got nothing");
  }
  if (text[begin] == '<') return ParseNcclXml(text);
  if (text[begin] != '{') return ParseTopoText(text);
  const wire::Json json = wire::Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Invalid("want JSON, got something else");
  return wire::ReadTopology(json);
}

Result<LinkMatrix> ReadTopologyFile(const std::string& file) {
  std::string text;
  if (file == "-") {
    text = ReadStandardInput(kMaxTopologyBytes);
  } else {
    BERTH_TRY(text, ReadFile(file));
  }
  auto matrix = ParseTopologyFile(text);
  if (!matrix) return tl::unexpected(std::move(matrix).error().Within(file));
  return matrix;
}

}  // namespace berth
