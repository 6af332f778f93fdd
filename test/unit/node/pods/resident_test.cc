// SPDX-License-Identifier: Apache-2.0
#include "node/guard/guard.h"

#include <gtest/gtest.h>

namespace berth::test::resident_test {
namespace {

TEST(CleanFileRanges, AreThoseOfFilesThatNobodyWroteTo) {
  EXPECT_EQ(node::CleanFileRanges("1000-2000 r-xp 00000000 08:01 77    /bin/a\n"
                                  "Rss:        4 kB\nAnonymous:        0 kB\n"
                                  "2000-3000 r--p 00001000 08:01 77    /bin/a\n"
                                  "Anonymous:        4 kB\n"  // relocated
                                  "3000-4000 rw-p 00002000 08:01 77    /bin/a\n"
                                  "Anonymous:        0 kB\n"
                                  "4000-5000 r--p 00000000 00:00 0     [vvar]\n"
                                  "Anonymous:        0 kB\n"
                                  "5000-6000 r--p 00000000 08:01 78    /lib/b\n"
                                  "Anonymous:        0 kB\n"),
            (std::vector<node::MappedRange>{{0x1000, 0x2000}, {0x5000, 0x6000}}));
  EXPECT_TRUE(node::CleanFileRanges("no range\nAnonymous: 0 kB\n").empty());
}

TEST(TrimResident, LeavesTheProcessAsItWas) {
  static int number = 41;
  node::TrimResident();
  EXPECT_EQ(++number, 42);
}

}  // namespace
}  // namespace berth::test::resident_test
