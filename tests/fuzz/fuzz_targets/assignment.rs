//! libFuzzer on `berth_fuzz::assignment`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| berth_fuzz::assignment::run(data));
