// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/log.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "test/support/http_fixture.h"

namespace berth::test::line_writer_test {
namespace {

class LineWriterTest : public testing::Test {
 protected:
  LineWriterTest() { EXPECT_EQ(pipe(ends_.data()), 0); }
  ~LineWriterTest() override {
    for (const int end : ends_) close(end);
  }

  // What the pipe holds now, read.
  std::string ReadAll() {
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    std::string text(1 << 20, '\0');
    std::size_t size = 0;
    for (ssize_t count = 0; (count = read(ends_[0], text.data() + size, text.size() - size)) > 0;) {
      size += static_cast<std::size_t>(count);
    }
    text.resize(size);
    return text;
  }

  // Fills the pipe up to where a line has no room.
  void Fill() {
    fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    const std::string filler(4096, '#');
    while (write(ends_[1], filler.data(), filler.size()) > 0) {
    }
    fcntl(ends_[1], F_SETFL, 0);
  }

  std::array<int, 2> ends_{};
};

TEST_F(LineWriterTest, WritesEveryLineInOrderBeforeItEnds) {
  std::string want;
  {
    LineWriter writer(ends_[1], 1 << 20);
    for (int i = 0; i < 200; ++i) {
      const std::string line = std::to_string(i) + std::string(100, 'x') + "\n";
      want += line;
      writer.Write(line);
    }
  }
  EXPECT_EQ(ReadAll(), want);
}

TEST_F(LineWriterTest, DropsAndCountsWhatDoesNotFitWhereNobodyReads) {
  Fill();
  LineWriter writer(ends_[1], 1000);
  const std::string line(99, 'x');
  for (int i = 0; i < 25; ++i) writer.Write(line + "\n");
  EXPECT_EQ(writer.dropped(), 15u);
  EXPECT_EQ(writer.held_bytes(), 1000u);
  EXPECT_EQ(writer.TakeLost(), 0u) << "there is no room to tell it";
  ReadAll();
  EXPECT_TRUE(Eventually([&] { return writer.held_bytes() == 0; }));
  EXPECT_EQ(writer.TakeLost(), 15u);
  EXPECT_EQ(writer.TakeLost(), 0u);
  EXPECT_EQ(writer.dropped(), 15u);
}

TEST_F(LineWriterTest, EndsWhereNobodyReads) {
  Fill();
  {
    LineWriter writer(ends_[1], 1 << 20);
    writer.Write("never read\n");
  }
  EXPECT_EQ(ReadAll().find("never"), std::string::npos);
}

TEST_F(LineWriterTest, GoesOnWhereTheReaderHasGone) {
  signal(SIGPIPE, SIG_IGN);
  close(ends_[0]);
  LineWriter writer(ends_[1], 1000);
  for (int i = 0; i < 100; ++i) {
    writer.Write("nobody\n");
    EXPECT_TRUE(Eventually([&] { return writer.held_bytes() == 0; }));
  }
  EXPECT_EQ(writer.dropped(), 0u);
  ends_[0] = dup(ends_[1]);  // for the destructor
}

TEST_F(LineWriterTest, ATextIsWrittenWithinItsTimeOrGivenUp) {
  EXPECT_TRUE(WriteWithin(ends_[1], "hello\n", std::chrono::seconds(10)));
  EXPECT_EQ(ReadAll(), "hello\n");
  Fill();
  EXPECT_FALSE(WriteWithin(ends_[1], "hello\n", std::chrono::milliseconds(60)));
}

}  // namespace
}  // namespace berth::test::line_writer_test
