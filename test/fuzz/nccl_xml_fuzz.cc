// SPDX-License-Identifier: Apache-2.0
#include "bench/machine_files/nccl_xml.h"

#include <cstdint>
#include <string_view>

#include "test/fuzz/matrix_promises.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto matrix = berth::ParseNcclXml({reinterpret_cast<const char*>(data), size});
  if (matrix) berth::fuzz::CheckMatrix(*matrix);
  return 0;
}
