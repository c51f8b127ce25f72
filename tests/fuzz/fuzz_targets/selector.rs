//! libFuzzer on `berth_fuzz::selector`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| berth_fuzz::selector::run(data));
