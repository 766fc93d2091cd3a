#![no_main]
//! See `properties::decided`.

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    tollgate_fuzz::mutate::mutate(data, size, max_size, seed)
});

libfuzzer_sys::fuzz_target!(|payload: &[u8]| {
    if let Err(violation) = tollgate_fuzz::properties::decided(payload) {
        panic!("{violation}");
    }
});
