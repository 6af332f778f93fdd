// SPDX-License-Identifier: Apache-2.0
//
// JobDeadlineSink: the deadlines of Jobs, out of a watch that somebody else has use for: Jobs are
// many, and listed once.
#pragma once

#include "scoring/earmarks/job_ends.h"
#include "server/kube/watch/reflector.h"

namespace berth::kube {

// Passes everything on to `next`, which also reports Jobs that cannot be read; here they are left
// out.
class JobDeadlineSink final : public ObjectSink {
 public:
  // References: they outlive the sink.
  JobDeadlineSink(JobEndTable& jobs, ObjectSink& next) : jobs_(jobs), next_(next) {}

  void ListBegins() override;
  void Listed(const PaddedText& object) override;
  void ListEnds() override;
  void NotServed() override;
  void Changed(const PaddedText& object) override;
  void Deleted(const PaddedText& object) override;

 private:
  void Take(const PaddedText& object);

  JobEndTable& jobs_;
  ObjectSink& next_;
};

}  // namespace berth::kube
