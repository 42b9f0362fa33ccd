//! Huge pages: a table that is read at random or at the speed of memory should not wait for address translation.

/// Asks the system to back this memory by huge pages, now. Nothing is changed if it cannot, and the contents never are.
///
/// Only for memory that the program owns: a mapped file would be read whole.
pub(crate) fn collapse<T>(memory: &[T]) {
    // Since Linux 6.1; before, the advice is refused, which does no harm.
    const MADV_COLLAPSE: i32 = 25;
    advise(memory.as_ptr().cast(), size_of_val(memory), MADV_COLLAPSE);
}

/// An empty vector with room for so many, on huge pages as soon as it is written to: cheaper than to collapse it later.
pub(crate) fn room<T>(count: usize) -> Vec<T> {
    const MADV_HUGEPAGE: i32 = 14;
    let room: Vec<T> = Vec::with_capacity(count);
    advise(room.as_ptr().cast(), room.capacity().saturating_mul(size_of::<T>()), MADV_HUGEPAGE);
    room
}

/// Gives the system a hint about the huge pages that lie within so many bytes of an allocation.
fn advise(start: *const u8, bytes: usize, advice: i32) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 2 << 20;
        let first = (start as usize).next_multiple_of(PAGE);
        let end = (start as usize).saturating_add(bytes) / PAGE * PAGE;
        // Miri, which looks for undefined behaviour in tests, knows no such call.
        if first < end && !cfg!(miri) {
            #[expect(unsafe_code, reason = "a call of the system")]
            // SAFETY: both callers pass an allocation that they borrow or own, and the range is whole pages inside of it, so
            // nothing of others is touched. These two kinds of advice move pages to other frames but keep contents and
            // protection, so no reference sees a change. An error is in the return value, and means that nothing was done.
            unsafe {
                libc::madvise(first as *mut libc::c_void, end - first, advice);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes, advice);
}

#[cfg(test)]
mod tests {
    use super::{collapse, room};

    /// Several huge pages; in Miri, which is slow and makes none, less.
    const MANY: usize = if cfg!(miri) { 1 << 12 } else { 1 << 20 };

    #[test]
    fn memory_keeps_its_contents_whatever_its_place_and_size() {
        let numbers: Vec<u64> = (0..MANY as u64).collect();
        for range in [0..0, 0..1, 5..1000, 3..MANY, 0..MANY] {
            collapse(&numbers[range]);
        }
        assert!(numbers.iter().zip(0..).all(|(n, i)| *n == i));
    }

    #[test]
    fn room_is_empty_and_large_enough() {
        for count in [0, 1, 1000, MANY] {
            let mut numbers: Vec<u64> = room(count);
            assert!(numbers.is_empty() && numbers.capacity() >= count);
            numbers.extend(0..count as u64);
            assert!(numbers.iter().zip(0..).all(|(n, i)| *n == i));
        }
        assert_eq!(room::<()>(5).len(), 0);
    }
}
