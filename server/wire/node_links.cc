// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node_links.h"

#include <utility>

#include "server/wire/hami_links.h"
#include "server/wire/topology_json.h"
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

std::string* LinkAnnotations::Find(std::string_view key) {
  if (key == kTopologyAnnotation) return &topology;
  if (key == kHamiScoreAnnotation) return &hami_scores;
  if (key == kHamiRegisterAnnotation) return &hami_register;
  return nullptr;
}

NodeLinks ReadNodeLinks(const LinkAnnotations& annotations, std::string_view product, int gpus,
                        LinkLibrary& library) {
  NodeLinks found;
  if (gpus == 0) return found;
  if (!annotations.topology.empty()) {
    auto matrix = ParseTopologyAnnotation(annotations.topology);
    const Status fits = matrix ? CheckCount(*matrix, gpus) : tl::unexpected(matrix.error());
    if (fits) {
      found.links = library.LinksOf(*std::move(matrix), product, std::string(kTopologyAnnotation));
      return found;
    }
    AddProblem(found.problem, kTopologyAnnotation, fits.error());
  }
  if (!annotations.hami_scores.empty()) {
    auto hami = ParseHamiLinks(annotations.hami_scores, annotations.hami_register);
    const Status fits = hami ? CheckCount(hami->matrix, gpus) : tl::unexpected(hami.error());
    if (fits) {
      found.links =
          library.LinksOf(std::move(hami->matrix), product, std::string(kHamiScoreAnnotation));
      found.uuids = std::move(hami->uuids);
      return found;
    }
    AddProblem(found.problem, kHamiScoreAnnotation, fits.error());
  }
  if (auto matrix = LinksOfProduct(product, gpus)) {
    found.links = library.LinksOf(*std::move(matrix), product, std::string(kCatalogueSource));
  }
  return found;
}

}  // namespace berth::wire
