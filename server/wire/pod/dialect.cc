// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/dialect.h"

namespace berth::wire {

Dialects::Dialects(std::vector<std::unique_ptr<const Dialect>> in_order)
    : dialects_(std::move(in_order)) {
  for (const Dialect& dialect : *this) {
    const DialectKeys keys = dialect.keys();
    of_nodes_.Add(keys.of_nodes, dialect);
    conditions_.Add(keys.conditions, dialect);
    of_pods_.Add(keys.of_pods, dialect);
    of_pods_.Add(keys.grants, dialect);
    records_.Add(keys.grants, dialect);
    resources_.Add(keys.resources, dialect);
    of_node_resources_.Add(keys.node_resources, dialect);
  }
}

void Dialects::Keys::Add(std::span<const std::string_view> keys, const Dialect& dialect) {
  for (const std::string_view key : keys) {
    if (key.ends_with('/') || key.ends_with('-') || key.ends_with('.')) {
      beginnings_.emplace_back(key, &dialect);
    } else {
      whole_.emplace(key, &dialect);  // the first that reads it
    }
  }
}

const Dialect* Dialects::Keys::Find(std::string_view key) const {
  if (const auto found = whole_.find(key); found != whole_.end()) return found->second;
  for (const auto& [beginning, dialect] : beginnings_) {
    if (key.starts_with(beginning)) return dialect;
  }
  return nullptr;
}

}  // namespace berth::wire
