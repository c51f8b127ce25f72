//! libFuzzer on `berth_fuzz::review`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| berth_fuzz::review::run(data));
