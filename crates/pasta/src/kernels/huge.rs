//! Huge pages: a table that is read at random or at the speed of memory should not wait for address translation.

/// Asks the system to back this memory by huge pages, now. Nothing is changed if it cannot, and the contents never are.
///
/// Only for memory that the program owns: a mapped file would be read whole.
pub(crate) fn collapse<T>(memory: &[T]) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 2 << 20;
        // Since Linux 6.1; before, the advice is refused, which does no harm.
        const MADV_COLLAPSE: libc::c_int = 25;
        let start = (memory.as_ptr() as usize).next_multiple_of(PAGE);
        let end = (memory.as_ptr() as usize + size_of_val(memory)) / PAGE * PAGE;
        if start < end {
            #[expect(unsafe_code, reason = "a call of the system")]
            // SAFETY: the range is whole pages inside the slice's own memory, which stays mapped while the slice is borrowed.
            // The advice moves pages to other frames but keeps contents and protection, so no reference sees a change. An
            // error is reported in the return value, and means that nothing was done.
            unsafe {
                libc::madvise(start as *mut libc::c_void, end - start, MADV_COLLAPSE);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

#[cfg(test)]
mod tests {
    use super::collapse;

    #[test]
    fn memory_keeps_its_contents_whatever_its_place_and_size() {
        let numbers: Vec<u64> = (0..1 << 20).collect();
        for range in [0..0, 0..1, 5..1000, 3..(1 << 20), 0..(1 << 20)] {
            collapse(&numbers[range]);
        }
        assert!(numbers.iter().zip(0..).all(|(n, i)| *n == i));
    }
}
