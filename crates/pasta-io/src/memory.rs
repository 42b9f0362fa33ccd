//! A limit on memory: what a table takes is known before it is taken.

use crate::fault::Fault;

/// How much memory a table may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory(pub(crate) Option<u64>);

impl Memory {
    /// Refuses `count` numbers of `size` bytes each if they are more than the limit.
    pub(crate) fn allow(self, count: usize, size: usize) -> Result<(), Fault> {
        let needed = (count as u64).saturating_mul(size as u64);
        match self.0.filter(|limit| needed > *limit) {
            Some(limit) => Err(Fault::Limit { needed, limit }),
            None => Ok(()),
        }
    }

    /// Makes room for more numbers at the end of a vector, by an eighth at a time: what is not used yet is not much.
    pub(crate) fn grow<V>(self, vector: &mut Vec<V>, more: usize) -> Result<(), Fault> {
        let len = vector.len();
        if vector.capacity() - len >= more {
            return Ok(());
        }
        let more = more.max(len / 8);
        self.allow(len.saturating_add(more), size_of::<V>())?;
        let needed = (len as u64 + more as u64).saturating_mul(size_of::<V>() as u64);
        vector.try_reserve_exact(more).map_err(|_| Fault::OutOfMemory(needed))
    }
}
