#pragma once
/// @file
/// The timed rows as tables, as results and as checks.

#include <vector>

#include "chapters/06_benchmark/benchmark_rows.h"
#include "common/program.h"

namespace fa {

/// Prints, for each set of shapes, time, rate, share of the bound and scratch memory against T;
/// then what could not run and why. Adds the rows to the results and the checks to the lab sheet.
/// @param ceilings of the device, for the rows' types and for fp32
void report_rows(Program& program, const std::vector<ShapeSet>& sets, const std::vector<Row>& rows,
                 const CeilingsByType& ceilings);

}  // namespace fa
