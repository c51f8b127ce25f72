//! libFuzzer on `berth_fuzz::settings`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| berth_fuzz::settings::run(data));
