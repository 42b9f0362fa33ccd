//! Oracles of the library, for Python: problem files, tables in memory, hard instances. A run on one never calls Python.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyArray1, PyReadonlyArray1};
use pasta_io::spec::{Overrides, read_setup};
use pasta_opt::bounds::{LowerMeanSquareSmooth, LowerSmooth};
use pasta_opt::hard::HardInstance;
use pasta_opt::objective::Objective;
use pasta_opt::oracle::{Oracle, Source};
use pasta_opt::table::{Dense, Design, Features, LOSSES, Linear, Loss, Sparse, Table, TableError, Values};
use pasta_opt::term::Term;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::borrowed::shared;
use crate::term::PyTerm;
use crate::value_error;

/// An oracle of the library.
#[pyclass(frozen, module = "pasta_opt._engine")]
pub(crate) struct Native {
    pub(crate) oracle: Arc<dyn Oracle>,
    start: Vec<f64>,
    words: String,
    /// What the problem file says is minimised with f.
    term: Option<Arc<dyn Term>>,
    /// For a table.
    pub(crate) linear: Option<Arc<Linear>>,
    /// True if the scale of its loss is that of the residuals when it is fitted: none was given.
    pub(crate) follows: bool,
    /// For a hard instance.
    hard: Option<Arc<HardInstance>>,
}

#[pymethods]
impl Native {
    #[getter]
    fn dim(&self) -> usize {
        self.oracle.about().dim
    }

    #[getter]
    fn identity(&self) -> &str {
        &self.oracle.about().identity
    }

    #[getter]
    fn words(&self) -> &str {
        &self.words
    }

    #[getter]
    fn losses(&self) -> bool {
        self.oracle.about().losses
    }

    #[getter]
    fn term(&self) -> Option<PyTerm> {
        self.term.clone().map(PyTerm::of)
    }

    /// Whether its samples are rows, all of which can be read.
    #[getter]
    fn is_table(&self) -> bool {
        matches!(self.oracle.about().source, Source::Table { .. })
    }

    #[getter]
    fn start<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.start)
    }

    /// Weights and intercepts in terms of the table's own columns.
    fn raw_weights<'py>(&self, py: Python<'py>, x: PyReadonlyArray1<'py, f64>) -> PyResult<Weights<'py>> {
        let linear = self.linear.as_ref().ok_or_else(|| PyTypeError::new_err("it is no table"))?;
        let x = x.as_slice()?;
        if x.len() != linear.dim() {
            return Err(value_error(format!(
                "x has {} coordinates, but the table {}",
                x.len(),
                linear.dim()
            )));
        }
        let model = linear.raw_weights(x);
        Ok((PyArray1::from_vec(py, model.weights), PyArray1::from_vec(py, model.intercepts)))
    }

    /// What is subtracted from each column of a table, and what it is divided by then; `None` where columns are taken as they are.
    fn scaling<'py>(&self, py: Python<'py>) -> Option<Weights<'py>> {
        let scaling = self.linear.as_ref()?.scaling()?;
        Some((PyArray1::from_slice(py, &scaling.shift), PyArray1::from_slice(py, &scaling.scale)))
    }

    fn value(&self, x: PyReadonlyArray1<'_, f64>) -> PyResult<f64> {
        Ok(self.instance()?.value(self.whole(x.as_slice()?)?))
    }

    fn gradient<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut out = vec![0.0; self.dim()];
        self.instance()?.gradient(self.whole(x.as_slice()?)?, &mut out);
        Ok(PyArray1::from_vec(py, out))
    }

    fn stochastic_gradient<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray1<'py, f64>,
        z: f64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        if !(0.0..=1.0).contains(&z) {
            let message = format!("z must be from 0 to 1, a draw or the mean of a batch, but is {z:?}");
            return Err(PyValueError::new_err(message));
        }
        let mut out = vec![0.0; self.dim()];
        self.instance()?.stochastic_gradient(self.whole(x.as_slice()?)?, z, &mut out);
        Ok(PyArray1::from_vec(py, out))
    }

    fn mask<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mask = self.instance()?.mask_at(&self.whole(x.as_slice()?)?[1..]);
        Ok(PyArray1::from_vec(py, mask))
    }

    fn progress(&self, x: PyReadonlyArray1<'_, f64>, threshold: f64) -> PyResult<usize> {
        Ok(self.instance()?.progress(&self.whole(x.as_slice()?)?[1..], threshold))
    }

    fn base_value(&self, x: PyReadonlyArray1<'_, f64>) -> PyResult<f64> {
        Ok(self.instance()?.base_value(&self.whole(x.as_slice()?)?[1..]))
    }

    /// The parameters of a hard instance, as JSON.
    fn parameters(&self) -> PyResult<String> {
        let instance = self.instance()?;
        let mut all = serde_json::to_value(instance.bound()).map_err(value_error)?;
        if let Some(map) = all.as_object_mut() {
            map.insert("shift".into(), instance.shift().into());
            map.insert("infimum".into(), instance.infimum().into());
        }
        serde_json::to_string(&all).map_err(value_error)
    }
}

/// Weights, one output after another, and an intercept for each output.
type Weights<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

impl Native {
    fn instance(&self) -> PyResult<&HardInstance> {
        self.hard.as_deref().ok_or_else(|| PyTypeError::new_err("it is no hard instance"))
    }

    fn whole<'x>(&self, x: &'x [f64]) -> PyResult<&'x [f64]> {
        let dim = self.dim();
        if x.len() == dim {
            Ok(x)
        } else {
            Err(value_error(format!("x has {} coordinates, not {dim}", x.len())))
        }
    }
}

/// The problem of a problem file.
#[pyfunction]
pub(crate) fn read_problem(py: Python<'_>, file: PathBuf) -> PyResult<Native> {
    let read = py.detach(|| read_setup(&file, &Overrides::default()));
    let problem = read.map_err(|failure| PyValueError::new_err(failure.words()))?.problem;
    let term = problem.term.clone();
    let (oracle, start, words) = (Arc::clone(&problem.oracle), problem.start.clone(), problem.words.clone());
    Ok(Native { oracle, start, words, term, linear: None, follows: false, hard: None })
}

/// The instance of Theorem 1, or of Theorem 2.
#[pyfunction]
pub(crate) fn hard_instance(
    smoothness: f64,
    mean_square: bool,
    gap: f64,
    growth: f64,
    floor: f64,
    target: f64,
) -> PyResult<Native> {
    let instance = if mean_square {
        HardInstance::mean_square_smooth(LowerMeanSquareSmooth {
            ms_smoothness: smoothness,
            gap,
            growth,
            floor,
            target,
        })
    } else {
        HardInstance::smooth(LowerSmooth { smoothness, gap, growth, floor, target })
    };
    let hard = Arc::new(instance.map_err(value_error)?);
    let (oracle, words) = (hard.clone() as Arc<dyn Oracle>, Objective::identity(&*hard));
    Ok(Native {
        oracle,
        start: vec![0.0; hard.dim()],
        words,
        term: None,
        linear: None,
        follows: false,
        hard: Some(hard),
    })
}

/// Numbers of a table, in double or single precision.
fn values(numbers: &Bound<'_, PyAny>) -> PyResult<Values> {
    if let Ok(array) = numbers.cast::<PyArray1<f64>>() {
        return Ok(Values::F64(shared(array)?));
    }
    Ok(Values::F32(shared(numbers.cast::<PyArray1<f32>>()?)?))
}

/// A table in memory, with a loss. `sparse` has row starts and columns; its arrays and `numbers` are not copied.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords of Python, one by one")]
pub(crate) fn table<'py>(
    py: Python<'py>,
    numbers: Bound<'py, PyAny>,
    shape: (usize, usize),
    sparse: Option<(Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>)>,
    labels: Bound<'py, PyArray1<f64>>,
    weights: Option<Bound<'py, PyArray1<f64>>>,
    loss: (String, Option<f64>, usize),
    intercept: bool,
    standardise: bool,
    degree: u32,
    penalty: f64,
    threads: usize,
) -> PyResult<Native> {
    let (rows, columns) = shape;
    let values = values(&numbers)?;
    let features = match sparse {
        None => Features::Dense(Dense { rows, columns, values }),
        Some((starts, indices)) => {
            let (starts, indices) = (shared(&starts)?, shared(&indices)?);
            Features::Sparse(Sparse { columns, starts, indices, values })
        }
    };
    let (labels, weights) = (shared(&labels)?, weights.map(|weights| shared(&weights)).transpose()?);
    let (name, parameter, classes) = loss;
    let Some(loss) = Loss::named(&name, parameter, classes) else {
        let known: Vec<_> = LOSSES.iter().map(|row| row.name).collect();
        return Err(value_error(format!("no loss is called {name:?}; there are {}", known.join(", "))));
    };
    if let Some(given) = parameter.filter(|_| loss.row().parameter.is_none()) {
        return Err(value_error(format!("the {name} loss has no parameter, but was given {given}")));
    }
    let design = Design { intercept, standardise, degree, penalty };
    let pool = crate::pool(threads)?;
    let make = || -> Result<Linear, TableError> {
        let table = Table::new(features, labels, weights, Vec::new())?;
        Linear::new(Arc::new(table), loss, design)
    };
    let linear = Arc::new(py.detach(|| pool.install(make)).map_err(value_error)?);
    let follows = parameter.is_none() && loss.for_deviation(1.0).is_some();
    let words = format!("{name} loss on a table of {rows} rows and {columns} columns");
    let start = linear.start();
    Ok(Native { oracle: linear.clone(), start, words, term: None, linear: Some(linear), follows, hard: None })
}

/// All losses: name, formula, labels, class, the name and usual value of the parameter.
#[pyfunction]
pub(crate) fn losses() -> Vec<(&'static str, &'static str, String, String, Option<(&'static str, f64)>)> {
    let plain = |value: serde_json::Result<String>| value.unwrap_or_default().trim_matches('"').to_owned();
    let row = |row: &pasta_opt::table::LossRow| {
        let (labels, class) = (serde_json::to_string(&row.labels), serde_json::to_string(&row.class));
        let parameter = row.parameter.map(|parameter| (parameter.name, parameter.default));
        (row.name, row.formula, plain(labels), plain(class), parameter)
    };
    LOSSES.iter().map(row).collect()
}
