//! An oracle whose answers many members work on.

use pasta_opt::oracle::{About, Answer, Charge, ErrorKind, Oracle, OracleError, Request, Team};

use crate::World;

/// An oracle whose answers many members work on: each is the one it would give alone, bit for bit.
///
/// What it adds by [`Request::sum_over`] is shared, sample by sample; so are the questions that a run asks
/// many of at once, such as those of a certificate. What an oracle computes otherwise, every member computes.
///
/// Every member must ask the same questions in the same order, as runs of the same seed do. If they do not, all fail, and say
/// where. Where samples do not follow from their addresses ([`About::shared`] is false), every sample is drawn by one member, and all get it.
#[derive(Debug, Clone)]
pub struct Spread<O> {
    oracle: O,
    world: World,
}

impl<O: Oracle> Spread<O> {
    /// The oracle, with the work on its answers shared by all members.
    pub fn new(oracle: O, world: &World) -> Self {
        let world = if oracle.about().shared { world.clone() } else { world.dividing_all() };
        Self { oracle, world }
    }

    /// The same for an oracle whose samples are dear, such as a simulator: each is drawn by one member, also where it would take less
    /// time if all drew it.
    pub fn drawing_once(oracle: O, world: &World) -> Self {
        Self { oracle, world: world.dividing_all() }
    }
}

impl<O: Oracle> Oracle for Spread<O> {
    fn about(&self) -> &About {
        self.oracle.about()
    }

    fn price(&self, request: &Request<'_>) -> Charge {
        self.oracle.price(request)
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        // The flag of this process, not that of the gate, which is set when all have heard.
        let told = self.world.told();
        let Some(team) = request.team else {
            return self.oracle.answer(&Request { stop: Some(&told), ..request.clone() }, answer);
        };
        team.hear(request)?;
        let request = Request { stop: Some(&told), team: Some(&self.world), ..request.clone() };
        self.oracle.answer(&request, answer).map_err(|error| match error.kind() {
            // What may succeed next time has been tried often enough by this member; the others have gone on.
            ErrorKind::Retry => self.world.failed(OracleError::new(error)),
            _ => self.world.failed(error),
        })
    }

    fn team(&self) -> Option<&dyn Team> {
        Some(&self.world)
    }
}
