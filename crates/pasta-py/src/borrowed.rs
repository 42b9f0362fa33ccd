//! The memory of numpy arrays as the numbers of a table, without a copy.

use std::slice;

use numpy::{Element, PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pasta_opt::table::Shared;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// An array that is kept alive, and where its numbers are.
struct Borrowed<T> {
    _array: Py<PyArray1<T>>,
    first: *const T,
    count: usize,
}

// SAFETY: the pointer is only read from, and what it points to lives as long as `_array`, which any thread may hold and drop: pyo3
// leaves the drop to a thread that is attached to the interpreter.
#[expect(unsafe_code, reason = "numbers of an array that Python owns")]
unsafe impl<T: Sync> Send for Borrowed<T> {}
// SAFETY: as above; shared reads of numbers are no race.
#[expect(unsafe_code, reason = "numbers of an array that Python owns")]
unsafe impl<T: Sync> Sync for Borrowed<T> {}

impl<T> AsRef<[T]> for Borrowed<T> {
    fn as_ref(&self) -> &[T] {
        // SAFETY: `first` and `count` are those of a contiguous, aligned, initialised array that `_array` keeps alive, and numpy neither
        // moves nor resizes an array that something else refers to. That nobody writes to it during a fit is what the documentation asks
        // of the caller, as numpy and scikit-learn do for code that runs without the interpreter's lock; numbers of plain types that
        // change meanwhile give a wrong model, and no index or pointer depends on them unchecked.
        #[expect(unsafe_code, reason = "numbers of an array that Python owns")]
        unsafe {
            slice::from_raw_parts(self.first, self.count)
        }
    }
}

/// Shares the numbers of an array of one dimension.
pub(crate) fn shared<T: Element + Send + Sync + 'static>(
    array: &Bound<'_, PyArray1<T>>,
) -> PyResult<Shared<T>> {
    if !array.is_c_contiguous() || !array.data().is_aligned() {
        return Err(PyValueError::new_err("the array has to be contiguous and aligned"));
    }
    let (first, count) = (array.data().cast_const(), array.len());
    // An empty array may point nowhere.
    if count == 0 {
        return Ok(std::sync::Arc::new(Vec::new()));
    }
    Ok(std::sync::Arc::new(Borrowed { _array: array.clone().unbind(), first, count }))
}
