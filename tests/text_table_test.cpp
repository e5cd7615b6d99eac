/// @file
/// Text tables line up, whatever the characters; numbers keep three significant digits.

#include "common/text_table.h"

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

using namespace fa;

TEST_CASE("display width counts terminal columns, not bytes") {
    CHECK(display_width("") == 0);
    CHECK(display_width("abc") == 3);
    CHECK(display_width("\u03b1\u00d7\u2212") == 3);  // Greek, multiplication, minus: one each
    CHECK(display_width("\u5185\u5b58") == 4);        // Chinese: two each
    CHECK(display_width("\uff21") == 2);              // full-width A
    CHECK(display_width("\U0001f642") == 2);          // emoji
    CHECK(display_width("e\u0301") == 1);             // combining accent: none
    CHECK(display_width("\u200b") == 0);              // zero-width space
    CHECK(display_width(std::string_view("a\0b", 3)) == 2);
}

TEST_CASE("display width takes any bytes") {
    CHECK(display_width("\xff\xfe") == 2);
    CHECK(display_width("\xe2\x80") == 2);  // cut off
    CHECK(display_width("\xf0\x9f") == 2);
    CHECK(display_width("\xc0\xaf") == 2);      // over-long
    CHECK(display_width("\xed\xa0\x80") == 3);  // surrogate
    CHECK(display_width("a\xff\u5185") == 4);   // goes on after the bad byte
}

TEST_CASE("columns line up") {
    TextTable table({"name", "bytes", "note"});
    table.left(2).add({"\u5185\u5b58", "1", "x"});
    table.rule();
    table.add({"e\u0301", "1000", ""});
    CHECK(table.str() ==
          "name  bytes  note\n"
          "----  -----  ----\n"
          "\u5185\u5b58      1  x\n"
          "----  -----  ----\n"
          "e\u0301      1000\n");
}

TEST_CASE("a table refuses a row of another length and a column that it lacks") {
    TextTable table({"a", "b"});
    CHECK_THROWS_WITH_AS(table.add({"1"}), "text table: a row of 1 cells under 2 headers",
                         std::invalid_argument);
    CHECK_THROWS_AS(table.left(2), std::out_of_range);
    CHECK(table.str() == "a  b\n-  -\n");
    CHECK(TextTable({}).str().empty());
}

TEST_CASE("a NaN is NaN, whatever its sign") {
    CHECK(with_plain_nan("nan") == "NaN");
    CHECK(with_plain_nan("-nan") == "NaN");
    CHECK(with_plain_nan("+nan %") == "NaN %");
    CHECK(with_plain_nan("-nanx") == "NaNx");
    CHECK(with_plain_nan("(1, -nan, -nan)") == "(1, NaN, NaN)");
    CHECK(with_plain_nan("1-nan") == "1-nan");  // no number
    CHECK(with_plain_nan("banana nancy") == "banana nancy");
    TextTable table({"error"});
    table.add({"-nan"});
    CHECK(table.str() == "error\n-----\nNaN\n");
}

TEST_CASE("bytes in binary units") {
    CHECK(human_bytes(0) == "0 B");
    CHECK(human_bytes(17) == "17 B");
    CHECK(human_bytes(1000) == "1000 B");
    CHECK(human_bytes(1023) == "1023 B");
    CHECK(human_bytes(1024) == "1 KiB");
    CHECK(human_bytes(1536) == "1.5 KiB");
    CHECK(human_bytes(1023.4 * 1024) == "1023 KiB");
    CHECK(human_bytes(1023.7 * 1024) == "1 MiB");
    CHECK(human_bytes(128.0 * 1024 * 1024) == "128 MiB");
    CHECK(human_bytes(-1536) == "-1.5 KiB");
    CHECK(human_bytes(0x1p70) == "1024 EiB");
    CHECK(human_bytes(std::numeric_limits<double>::quiet_NaN()) == "NaN");
    CHECK(human_bytes(-std::numeric_limits<double>::quiet_NaN()) == "NaN");
    CHECK(human_bytes(std::numeric_limits<double>::infinity()) == "inf");
}

TEST_CASE("seconds") {
    CHECK(human_seconds(0) == "0 s");
    CHECK(human_seconds(1.234e-3) == "1.23 ms");
    CHECK(human_seconds(45.6e-6) == "45.6 us");
    CHECK(human_seconds(2) == "2.00 s");
    CHECK(human_seconds(999.6e-6) == "1.00 ms");
    CHECK(human_seconds(999.4e-6) == "999 us");
    CHECK(human_seconds(1e-9) == "1.00 ns");
    CHECK(human_seconds(0.1e-9) == "0.100 ns");
    CHECK(human_seconds(123456) == "123456 s");
}

TEST_CASE("counts in decimal units") {
    CHECK(human_count(0) == "0");
    CHECK(human_count(512) == "512");
    CHECK(human_count(512, "FLOP") == "512 FLOP");
    CHECK(human_count(1.234e12) == "1.23 T");
    CHECK(human_count(1.234e12, "FLOP") == "1.23 TFLOP");
    CHECK(human_count(45.6e9, "B/s") == "45.6 GB/s");
    CHECK(human_count(999.6, "FLOP") == "1.00 kFLOP");
    CHECK(human_count(1e6) == "1.00 M");
    CHECK(human_count(2.5e21) == "2500 E");
}
