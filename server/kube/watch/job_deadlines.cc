// SPDX-License-Identifier: Apache-2.0
#include "server/kube/watch/job_deadlines.h"

#include "server/wire/api/job_json.h"

namespace berth::kube {

void JobDeadlineSink::Take(const PaddedText& object) {
  if (const auto job = wire::DecodeJobDeadline(object)) jobs_.Put(*job);
}

void JobDeadlineSink::ListBegins() {
  jobs_.ListBegins();
  next_.ListBegins();
}

void JobDeadlineSink::Listed(const PaddedText& object) {
  Take(object);
  next_.Listed(object);
}

void JobDeadlineSink::ListEnds() {
  jobs_.ListEnds();
  next_.ListEnds();
}

void JobDeadlineSink::NotServed() {
  jobs_.ListEnds();
  next_.NotServed();
}

void JobDeadlineSink::Changed(const PaddedText& object) {
  Take(object);
  next_.Changed(object);
}

void JobDeadlineSink::Deleted(const PaddedText& object) {
  if (const auto job = wire::DecodeJobDeadline(object)) jobs_.Remove(*job);
  next_.Deleted(object);
}

}  // namespace berth::kube
