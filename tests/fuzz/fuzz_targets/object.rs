//! libFuzzer on `berth_fuzz::object`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| berth_fuzz::object::run(data));
