//! libFuzzer on `berth_fuzz::quantity`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| berth_fuzz::quantity::run(data));
