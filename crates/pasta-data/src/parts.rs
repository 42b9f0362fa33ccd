//! Temporary.
use std::sync::Arc;
/// s
pub type Shared<T> = Arc<dyn AsRef<[T]> + Send + Sync>;
/// v
#[derive(Clone)]
#[allow(missing_docs, reason = "t")]
pub enum Values { F64(Shared<f64>), F32(Shared<f32>) }
/// d
#[derive(Clone)]
#[allow(missing_docs, reason = "t")]
pub struct Dense  { pub rows: usize, pub columns: usize, pub values: Values }
/// s
#[derive(Clone)]
#[allow(missing_docs, reason = "t")]
pub struct Sparse { pub columns: usize, pub starts: Shared<u64>, pub indices: Shared<u32>, pub values: Values }
/// f
#[derive(Clone)]
#[allow(missing_docs, reason = "t")]
pub enum Features { Dense(Dense), Sparse(Sparse) }
impl std::fmt::Debug for Values { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("Values") } }
impl std::fmt::Debug for Dense { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("Dense") } }
impl std::fmt::Debug for Sparse { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("Sparse") } }
impl std::fmt::Debug for Features { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("Features") } }
