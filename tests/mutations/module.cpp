/// @file
/// The way into a mutant: a shared module of one mutated source file hands out its entry of the
/// list. FA_UNIT_HEADER and FA_ENTRY come from CMake.

#include FA_UNIT_HEADER

extern "C" [[gnu::visibility("default")]] const fa::Implementation* fa_mutant() {
    return &fa::FA_ENTRY;
}
