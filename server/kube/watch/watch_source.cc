// SPDX-License-Identifier: Apache-2.0
#include "server/kube/watch/watch_source.h"

namespace berth::kube {

std::vector<std::string> ApiPaths(std::string_view group, const std::vector<std::string>& versions,
                                  std::string_view resource) {
  std::vector<std::string> paths;
  for (const std::string& version : versions) {
    std::string path = "/apis/";
    paths.push_back(path.append(group).append("/").append(version).append("/").append(resource));
  }
  return paths;
}

}  // namespace berth::kube
