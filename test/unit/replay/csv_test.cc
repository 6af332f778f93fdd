// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/csv.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/temp_file.h"

namespace berth::replay::csv_test {
namespace {

using test::TempFile;
using Fields = std::vector<std::string_view>;

constexpr std::array<std::string_view, 2> kColumns = {"name", "size"};

TEST(SplitFields, KeepsEmptyFields) {
  EXPECT_EQ(SplitFields("a,b", ','), (Fields{"a", "b"}));
  EXPECT_EQ(SplitFields("", ','), Fields{""});
  EXPECT_EQ(SplitFields(",", ','), (Fields{"", ""}));
  EXPECT_EQ(SplitFields("a,,b,", ','), (Fields{"a", "", "b", ""}));
  EXPECT_EQ(SplitFields("a b", ','), Fields{"a b"});
}

TEST(SplitLines, TakesBothLineEndsAndLeavesOutEmptyLines) {
  EXPECT_EQ(SplitLines("a\nb\r\n\n\r\nc"), (Fields{"a", "b", "c"}));
  EXPECT_EQ(SplitLines("a\n"), Fields{"a"});
  EXPECT_TRUE(SplitLines("").empty());
  EXPECT_TRUE(SplitLines("\n\n").empty());
}

TEST(ReadTextFile, RefusesWhatHasNoEnd) {
  const auto text = ReadTextFile("/dev/zero");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message, "/dev/zero: want at most 256 MiB");
}

TEST(ReadTextFile, ReadsPlainAndGzippedFilesAlike) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i) + ",line\n";
  const TempFile plain(text), gzipped(text, TempFile::Kind::kGzip);
  ASSERT_LT(std::filesystem::file_size(gzipped.path()), text.size() / 2);
  EXPECT_EQ(ReadTextFile(plain.path()).value(), text);
  EXPECT_EQ(ReadTextFile(gzipped.path()).value(), text);
  EXPECT_EQ(ReadTextFile(TempFile("").path()).value(), "");
}

TEST(ReadTextFile, NamesAFileThatIsNotThere) {
  const auto text = ReadTextFile("/no/such/file");
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code, Errc::kNotFound);
  EXPECT_TRUE(text.error().message.starts_with("/no/such/file: ")) << text.error().message;
}

TEST(ReadTextFile, RefusesAFolder) {
  const auto text = ReadTextFile(testing::TempDir());
  ASSERT_FALSE(text.has_value());
  EXPECT_TRUE(text.error().message.starts_with(testing::TempDir())) << text.error().message;
}

TEST(ReadTextFile, RefusesAGzippedFileThatIsCutOff) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919 % 10'007) + "\n";
  const TempFile file(text, TempFile::Kind::kGzip);
  const auto whole = std::filesystem::file_size(file.path());
  for (const auto size : {whole - 1, whole - 8, whole / 2}) {
    file.Truncate(size);
    const auto read = ReadTextFile(file.path());
    ASSERT_FALSE(read.has_value()) << size << " of " << whole << " bytes gave " << read->size();
    EXPECT_EQ(read.error().code, Errc::kInvalidArgument);
    EXPECT_TRUE(read.error().message.starts_with(file.path() + ": cannot be read: "))
        << read.error().message;
  }
}

TEST(CsvTable, FindsRowsAndColumns) {
  const TempFile file("name,size,colour\r\nx,1,red\r\n\r\ny,2,\n");
  const CsvTable table = CsvTable::Read(file.path(), kColumns).value();
  ASSERT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.at(0, 0), "x");
  EXPECT_EQ(table.at(1, 2), "");
  EXPECT_EQ(table.ColumnNamed("colour"), 2U);
  EXPECT_EQ(table.ColumnNamed("weight"), CsvTable::npos);
  EXPECT_EQ(table.Integer(1, 1, 0, 9), 2);
  EXPECT_EQ(table.PlaceOf(1), file.path() + ":4") << "the empty line counts";
}

TEST(CsvTable, TakesColumnsByNameInAnyOrder) {
  const TempFile file("colour,size,name\nred,1,x\n");
  const CsvTable table = CsvTable::Read(file.path(), kColumns).value();
  EXPECT_EQ(table.at(0, 0), "x");
  EXPECT_EQ(table.at(0, 1), "1");
  EXPECT_EQ(table.at(0, table.ColumnNamed("colour")), "red");
}

TEST(CsvTable, ReadsQuotedFields) {
  const TempFile file(
      "\"name\",size,\"colour\"\n\"a, b\",1,\"red\nor \"\"green\"\"\"\n\"\",\"2\",\n5\" "
      "disk,3,c\n");
  const CsvTable table = CsvTable::Read(file.path(), kColumns).value();
  ASSERT_EQ(table.rows(), 3U);
  EXPECT_EQ(table.at(0, 0), "a, b");
  EXPECT_EQ(table.at(0, 2), "red\nor \"green\"");
  EXPECT_EQ(table.at(1, 0), "");
  EXPECT_EQ(table.Integer(1, 1, 0, 9), 2);
  EXPECT_EQ(table.at(2, 0), "5\" disk") << "a quote within a field is text";
  EXPECT_EQ(table.PlaceOf(1), file.path() + ":4") << "the row before has two lines";
}

TEST(CsvTable, LeavesOutTheIndexOfPandas) {
  const TempFile file(",name,Unnamed: 0,size\n0,x,0,1.0\n1,y,1,\n");
  const CsvTable table = CsvTable::Read(file.path(), kColumns).value();
  EXPECT_EQ(table.at(0, 0), "x");
  EXPECT_EQ(table.Integer(0, 1, 0, 9), 1);
  EXPECT_EQ(table.ColumnNamed(""), CsvTable::npos);
}

TEST(CsvTable, ReadsWhatExcelWrites) {
  for (const char* separator : {",", ";", "\t"}) {
    std::string text = "\xEF\xBB\xBFname|size\r\nx|1\r\n\"y\"|\"2\"\r\n";
    for (std::size_t at = 0; (at = text.find('|')) != text.npos;) text.replace(at, 1, separator);
    for (const std::string& end : {std::string("z|3"), std::string("z|\"3\"\r")}) {
      std::string whole = text + end;
      whole.replace(whole.find('|'), 1, separator);
      const TempFile file(whole);
      const CsvTable table = CsvTable::Read(file.path(), kColumns).value();
      ASSERT_EQ(table.rows(), 3U);
      EXPECT_EQ(table.at(0, 0), "x");
      EXPECT_EQ(table.at(1, 1), "2");
      EXPECT_EQ(table.at(2, 1), "3");
    }
  }
}

TEST(CsvTable, TakesFloatsThatAreWhole) {
  const TempFile file(
      "name,size\na,2.0\nb,1e3\nc,-4.000\nd,1.5E+1\ne,2.5\nf,1e-1\ng,1e300\nh,nan\ni,2.0.0\n"
      "j,\"2,0\"\n");
  const CsvTable table = CsvTable::Read(file.path(), kColumns).value();
  EXPECT_EQ(table.Integer(0, 1, 0, 9), 2);
  EXPECT_EQ(table.Integer(1, 1, 0, 1000), 1000);
  EXPECT_EQ(table.Integer(2, 1, -9, 9), -4);
  EXPECT_EQ(table.Integer(3, 1, 0, 15), 15);
  EXPECT_EQ(table.Integer(1, 1, 0, 999).error().message,
            file.path() + ":3: column size: want an integer from 0 to 999, got \"1e3\"");
  EXPECT_EQ(table.Integer(4, 1, 0, 9).error().message,
            file.path() + ":6: column size: want an integer from 0 to 9, got \"2.5\"");
  for (std::size_t row = 5; row < table.rows(); ++row) {
    EXPECT_FALSE(table.Integer(row, 1, -9, 9)) << table.at(row, 1);
  }
}

TEST(CsvField, IsReadAsItWasWritten) {
  EXPECT_EQ(CsvField("plain text"), "plain text");
  for (const std::string text : {"a,b", "a;b", "say \"x\"", "two\nlines", "two\r\nlines", ""}) {
    const TempFile file("name,size\n" + CsvField(text) + "," + CsvField(text) + "\n");
    const CsvTable table = CsvTable::Read(file.path(), kColumns).value();
    EXPECT_EQ(table.at(0, 0), text);
    EXPECT_EQ(table.at(0, 1), text);
  }
}

TEST(CsvHeader, HasTheNamesOfTheColumns) {
  EXPECT_EQ(CsvHeader("\xEF\xBB\xBF,\"name\",size\n1,2,3\n"),
            (std::vector<std::string>{"", "name", "size"}));
  EXPECT_TRUE(CsvHeader("").empty());
  EXPECT_TRUE(CsvHeader("\"name").empty());
}

TEST(CsvTable, SurvivesAMove) {
  const TempFile file("name,size\nx,1\n");
  CsvTable first = CsvTable::Read(file.path(), kColumns).value();
  const CsvTable second = std::move(first);
  EXPECT_EQ(second.at(0, 0), "x");
}

TEST(CsvTable, NamesFileAndLineOfWhatIsWrong) {
  struct Case {
    std::string description, text, message;  // the message goes on after the path
  };
  for (const Case& c :
       {Case{"empty", "", ": want the columns name,size, got an empty file"},
        Case{"only empty lines", "\n\r\n", ": want the columns name,size, got an empty file"},
        Case{"another column", "name,weight\n", ":1: want the columns name,size, got name,weight"},
        Case{"only one of them", "size\n", ":1: want the columns name,size, got size"},
        Case{"a column twice", "name,size,x,x\n", ":1: want every column once, got \"x\" twice"},
        Case{"UTF-16", "\xFF\xFEn", ": want UTF-8, got UTF-16"},
        Case{"a quote that does not end", "name,size\nx,1\ny,\"2\n3\n",
             ":3: want a closing quote, got the end of the file"},
        Case{"text after a quote", "name,size\n\"a\nb\"c,1\n",
             ":3: want a separator or the end of the line after a closing quote, got \"c,1\""},
        Case{"too few columns", "\nname\n", ":2: want the columns name,size, got name"},
        Case{"no header", "x,1\ny,2\n", ":1: want the columns name,size, got x,1"},
        Case{"a field too few", "name,size\nx,1\n\ny\n", ":4: want 2 fields, got 1"},
        Case{"a field too many", "name,size\nx,1,\n", ":2: want 2 fields, got 3"}}) {
    const TempFile file(c.text);
    const auto table = CsvTable::Read(file.path(), kColumns);
    ASSERT_FALSE(table.has_value()) << c.description;
    EXPECT_EQ(table.error().code, Errc::kInvalidArgument) << c.description;
    EXPECT_EQ(table.error().message, file.path() + c.message) << c.description;
  }
}

TEST(CsvTable, NamesTheColumnOfAnInvalidNumber) {
  const TempFile file("name,size\nx,1\ny,-2\n");
  const CsvTable table = CsvTable::Read(file.path(), kColumns).value();
  EXPECT_EQ(table.Integer(1, 1, 0, 9).error().message,
            file.path() + ":3: column size: want an integer from 0 to 9, got \"-2\"");
  EXPECT_EQ(table.Integer(0, 0, 0, 9).error().message,
            file.path() + ":2: column name: want an integer from 0 to 9, got \"x\"");
}

}  // namespace
}  // namespace berth::replay::csv_test
