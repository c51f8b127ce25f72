//! libFuzzer on `berth_fuzz::register`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| berth_fuzz::register::run(data));
