// SPDX-License-Identifier: Apache-2.0
//
// Arrays that grow by an eighth and not to double their size: where there is one for each of many
// nodes, what a vector takes in advance would be a third of all their memory.
#pragma once

#include <vector>

namespace berth {

// Makes room for one more entry. Iterators are valid no longer.
template <class T>
void ReserveOneMore(std::vector<T>& entries) {
  if (entries.size() < entries.capacity()) return;
  entries.reserve(entries.size() + entries.size() / 8 + 1);
}

}  // namespace berth
