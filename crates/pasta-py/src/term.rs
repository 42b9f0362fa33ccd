//! Terms for Python: those of the library by their specs, and a Python object with a prox of its own.

use std::sync::{Arc, Mutex, PoisonError};

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pasta_opt::term::{Outside, Steps, Term, TermError, TermSpec, check_laws, metric_prox, of_specs};
use pyo3::prelude::*;

use crate::value_error;

/// A term, ready for runs.
#[pyclass(frozen, module = "pasta_opt._engine", name = "Term")]
#[derive(Clone)]
pub(crate) struct PyTerm {
    term: Arc<dyn Term>,
    raised: Raised,
}

/// What an object of Python raised in the middle of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    fn is_there(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl PyTerm {
    /// A term of the library.
    pub(crate) fn of(term: Arc<dyn Term>) -> Self {
        Self { term, raised: Raised::default() }
    }
}

#[pymethods]
impl PyTerm {
    #[getter]
    fn identity(&self) -> String {
        self.term.identity()
    }
}

/// A term or none, as an argument.
pub(crate) type GivenTerm<'py> = Option<PyRef<'py, PyTerm>>;

/// The term itself.
pub(crate) fn term_of(given: &GivenTerm<'_>) -> Option<Arc<dyn Term>> {
    given.as_ref().map(|given| Arc::clone(&given.term))
}

/// What came of a run, unless the term raised something in it: then it is that.
pub(crate) fn unless_raised<T>(given: Option<&PyTerm>, result: PyResult<T>) -> PyResult<T> {
    given.and_then(|given| given.raised.take()).map_or(result, Err)
}

/// The sum of terms that are given as JSON, over so many coordinates.
#[pyfunction]
pub(crate) fn terms(json: &str, dim: usize) -> PyResult<Option<PyTerm>> {
    let specs: Vec<TermSpec> =
        serde_json::from_str(json).map_err(|error| value_error(format!("term: {error}")))?;
    Ok(of_specs(&specs, dim).map_err(value_error)?.map(PyTerm::of))
}

/// A term of a Python object with `value` and `prox`, after its laws were checked around a point.
#[pyfunction]
pub(crate) fn own_term(
    object: Py<PyAny>,
    identity: String,
    is_diagonal: bool,
    start: PyReadonlyArray1<'_, f64>,
) -> PyResult<PyTerm> {
    let start = start.as_slice()?.to_vec();
    let raised = Raised::default();
    let term = Own { object, identity, is_diagonal, dim: start.len(), raised: raised.clone() };
    let checked = check_laws(&term, &start, 1);
    if let Some(error) = raised.take() {
        return Err(error);
    }
    checked.map_err(|error| value_error(format!("term {}: {error}", term.identity)))?;
    Ok(PyTerm { term: Arc::new(term), raised })
}

/// A Python object with `value(x)` and `prox(v, gamma)`. After an exception every point is outside of its domain, so that the run ends.
#[derive(Debug)]
struct Own {
    object: Py<PyAny>,
    identity: String,
    /// Whether its prox takes an array for gamma.
    is_diagonal: bool,
    dim: usize,
    raised: Raised,
}

impl Own {
    /// Calls it with arrays, and keeps what it raises.
    fn call<T>(&self, ask: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        if self.raised.is_there() {
            return None;
        }
        Python::attach(|py| ask(self.object.bind(py)).map_err(|error| self.raised.keep(error)).ok())
    }

    fn ask_prox(&self, steps: Steps<'_>, v: &[f64]) -> Option<Vec<f64>> {
        self.call(|object| {
            let py = object.py();
            let point = PyArray1::from_slice(py, v);
            let answer = match steps {
                Steps::One(gamma) => object.call_method1("prox", (point, gamma))?,
                Steps::Each(gammas) => {
                    object.call_method1("prox", (point, PyArray1::from_slice(py, gammas)))?
                }
            };
            let name = &self.identity;
            let wrong = |what: String| {
                value_error(format!(
                    "term {name}: prox must give an array of {} numbers, but {what}",
                    v.len()
                ))
            };
            let kind = answer.get_type().name()?.to_string();
            let array = py.import("numpy")?.call_method1("ascontiguousarray", (answer, "f8"))?;
            let array: Bound<'_, PyArray1<f64>> =
                array.cast_into().map_err(|_| wrong(format!("it gave a {kind} of another shape")))?;
            let numbers = array.to_vec()?;
            if numbers.len() != v.len() {
                return Err(wrong(format!("it gave {}", numbers.len())));
            }
            match numbers.iter().position(|z| !z.is_finite()) {
                Some(i) => Err(wrong(format!("number {i} is {}", numbers[i]))),
                None => Ok(numbers),
            }
        })
    }
}

impl Term for Own {
    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn check(&self, dim: usize) -> Result<(), TermError> {
        if dim == self.dim {
            return Ok(());
        }
        Err(TermError(format!("term {} is for {} coordinates, but there are {dim}", self.identity, self.dim)))
    }

    fn value(&self, x: &[f64]) -> f64 {
        let ask = |object: &Bound<'_, PyAny>| {
            object.call_method1("value", (PyArray1::from_slice(object.py(), x),))?.extract()
        };
        self.call(ask).unwrap_or(f64::INFINITY)
    }

    fn prox(&self, steps: Steps<'_>, v: &mut [f64]) {
        match steps {
            Steps::Each(gammas) if !self.is_diagonal => metric_prox(self, gammas, v),
            _ => {
                if let Some(z) = self.ask_prox(steps, v) {
                    v.copy_from_slice(&z);
                }
            }
        }
    }

    fn outside(&self, x: &[f64]) -> Option<Outside> {
        let value = self.value(x);
        let words = || {
            if self.raised.is_there() {
                return format!("term {} raised an exception", self.identity);
            }
            format!("the value of term {} is {value} there", self.identity)
        };
        (!value.is_finite()).then(|| Outside { coordinate: None, words: words() })
    }
}
