//! libFuzzer on `berth_fuzz::mig`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| berth_fuzz::mig::run(data));
