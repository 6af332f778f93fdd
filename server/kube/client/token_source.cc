// SPDX-License-Identifier: Apache-2.0
#include "server/kube/client/token_source.h"

#include <utility>

#include "base/file.h"

namespace berth::kube {
namespace {

constexpr std::chrono::seconds kReadInterval(1);

}  // namespace

TokenSource::TokenSource(std::string token, std::string file)
    : file_(std::move(file)), token_(std::move(token)) {}

void TokenSource::Read() {
  next_read_ = std::chrono::steady_clock::now() + kReadInterval;
  const Result<std::string> text = ReadFile(file_);
  if (!text) return;
  // One line; anything else has no place in a header.
  std::string token;
  for (const char c : *text) {
    if (c > ' ' && c < '\x7f') token += c;
  }
  if (!token.empty()) token_ = std::move(token);
}

std::string TokenSource::Current() {
  const MutexLock lock(mutex_);
  if (!file_.empty() && std::chrono::steady_clock::now() >= next_read_) Read();
  return token_;
}

bool TokenSource::RenewedAfter(const std::string& used) {
  const MutexLock lock(mutex_);
  if (!file_.empty()) Read();
  return token_ != used;
}

}  // namespace berth::kube
