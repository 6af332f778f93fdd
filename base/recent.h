// SPDX-License-Identifier: Apache-2.0
//
// Recent: a map that forgets. It is bounded in entries and in bytes; beyond a bound the entry that
// was not touched for longest goes first, and the newest one always stays.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <list>
#include <unordered_map>
#include <utility>

namespace berth {

// A key is hashed by HashValue where its type has one, else by std::hash.
template <class Key, class Value>
class Recent {
 public:
  explicit Recent(std::size_t most,
                  std::size_t most_bytes = std::numeric_limits<std::size_t>::max())
      : most_(most), most_bytes_(most_bytes) {}
  Recent(const Recent&) = delete;
  Recent& operator=(const Recent&) = delete;

  [[nodiscard]] bool contains(const Key& key) const { return index_.contains(key); }
  [[nodiscard]] std::size_t size() const { return index_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // nullptr: it is not known. Counts as no touch.
  [[nodiscard]] Value* Find(const Key& key) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &found->second->value;
  }
  [[nodiscard]] const Value* Find(const Key& key) const {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &found->second->value;
  }
  // The same, and counts as a touch.
  [[nodiscard]] Value* Touch(const Key& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &entries_.front().value;
  }

  // Adds or replaces it, as the newest; then forgets others until the bounds are kept. bytes: what
  // it counts for. Returns the value, which stays where it is until it is forgotten.
  Value& Put(const Key& key, Value value = {}, std::size_t bytes = 0) {
    Entries added;  // so that nothing has changed where memory ends
    added.push_front({nullptr, std::move(value), bytes});
    const auto [at, is_new] = index_.try_emplace(key, added.begin());
    if (!is_new) {
      bytes_ -= at->second->bytes;
      entries_.erase(std::exchange(at->second, added.begin()));
    }
    added.front().key = &at->first;
    entries_.splice(entries_.begin(), added);
    bytes_ += bytes;
    while (size() > 1 && (size() > most_ || bytes_ > most_bytes_)) Erase(*entries_.back().key);
    return entries_.front().value;
  }

  // Returns whether it was known.
  bool Erase(const Key& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return false;
    const auto entry = found->second;
    bytes_ -= entry->bytes;
    index_.erase(found);
    entries_.erase(entry);
    return true;
  }

  struct Entry {
    const Key* key;
    Value value;
    std::size_t bytes;
  };
  // Newest first. Counts as no touch.
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }

 private:
  using Entries = std::list<Entry>;  // the newest first
  struct Hash {
    std::size_t operator()(const Key& key) const {
      if constexpr (requires { HashValue(key); }) {
        return HashValue(key);
      } else {
        return std::hash<Key>()(key);
      }
    }
  };

  const std::size_t most_;
  const std::size_t most_bytes_;
  Entries entries_;
  std::unordered_map<Key, typename Entries::iterator, Hash> index_;
  std::size_t bytes_ = 0;
};

}  // namespace berth
