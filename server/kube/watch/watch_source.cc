// SPDX-License-Identifier: Apache-2.0
#include "server/kube/watch/watch_source.h"

#include "base/text.h"

namespace berth::kube {
namespace {

// Of a cause, which may quote what cannot be read.
constexpr std::size_t kMostWhyBytes = 500;

}  // namespace

void UnreadableObjects::Add(const std::string& object, const std::string& cause) {
  const std::string why = Shortened(cause, kMostWhyBytes);
  std::string& known = why_[object];
  if (known != why) report_(resource_, object, why);  // once, not at every heartbeat
  known = why;
  added_.insert(object);
  count_ = why_.size();
}

void UnreadableObjects::ListEnds() {
  std::erase_if(why_, [this](const auto& object) { return !added_.contains(object.first); });
  count_ = why_.size();
}

void UnreadableObjects::Remove(const std::string& object) {
  if (why_.erase(object) > 0) count_ = why_.size();
}

std::string NameIn(const PaddedText& object) {
  const auto meta = wire::DecodeObjectMeta(object);
  return meta ? Shortened(meta->FullName(), wire::kMostUidBytes) : "(unnamed)";
}

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
