//! libFuzzer on `berth_fuzz::lock`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| berth_fuzz::lock::run(data));
