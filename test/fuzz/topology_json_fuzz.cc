// SPDX-License-Identifier: Apache-2.0
//
// A file of any form; what was read of the GPUs, written as the annotation and read again, is the
// same. (Links between NICs are not in the annotation.)
#include "server/wire/node/topology_json.h"

#include <cstdint>
#include <string_view>

#include "bench/machine_files/machine_file.h"
#include "bench/machine_files/show_topology.h"
#include "test/fuzz/matrix_promises.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = berth::wire;
  const auto matrix = berth::ParseTopologyFile({reinterpret_cast<const char*>(data), size});
  if (!matrix) return 0;
  berth::fuzz::CheckMatrix(*matrix);
  (void)berth::TopologyJson(*matrix);
  const auto annotation = wire::TopologyAnnotation(*matrix);
  if (!annotation) return 0;  // links of more kinds than it has digits
  const auto again = wire::ParseTopologyAnnotation(*annotation);
  BERTH_CHECK(again && again->device_count() == matrix->device_count());
  for (int gpu = 0; gpu < matrix->gpu_count(); ++gpu) {
    for (int device = 0; device < matrix->device_count(); ++device) {
      BERTH_CHECK(again->link(gpu, device) == matrix->link(gpu, device));
    }
  }
  BERTH_CHECK(*wire::TopologyAnnotation(*again) == *annotation);
  return 0;
}
