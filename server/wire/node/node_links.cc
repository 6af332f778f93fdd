// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/node_links.h"

#include <utility>

#include "topology/links/product_links.h"

namespace berth::wire {
namespace {

Status CheckCount(const LinkMatrix& matrix, int gpus) {
  if (matrix.gpu_count() == gpus) return {};
  return Invalid("want the node's " + std::to_string(gpus) + " GPUs, got " +
                 std::to_string(matrix.gpu_count()));
}

void AddProblem(std::string& problem, std::string_view annotation, const Error& error) {
  if (!problem.empty()) problem += "; ";
  problem.append("annotation ").append(annotation).append(": ").append(error.message);
}

}  // namespace

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
    AddProblem(found.problem, said->annotation, fits.error());
  }
  found.links = CatalogueLinks(product, gpus, library);
  return found;
}

}  // namespace berth::wire
