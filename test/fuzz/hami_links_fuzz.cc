// SPDX-License-Identifier: Apache-2.0
//
// Scores, a line break, and the register.
#include "server/dialects/hami/hami_dialect.h"

#include <cstdint>
#include <string_view>

#include "test/fuzz/matrix_promises.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return 0;
  const auto links = berth::dialects::ParseHamiLinks(
      text.substr(0, end), berth::wire::Json::parse(text.substr(end + 1), nullptr, false));
  if (!links) return 0;
  berth::fuzz::CheckMatrix(links->matrix);
  BERTH_CHECK(links->uuids.size() == links->matrix.gpus.size());
  return 0;
}
