//! What members tell each other: reports on the way up to rank 0, its verdict on the way down.

use std::collections::VecDeque;

use pasta_opt::oracle::ErrorKind;

use crate::tree::{Piece, join};

/// What a member is doing when it reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// It has been quiet for long.
    Beat,
    /// Summing a batch.
    Sum,
    /// Filling rows.
    Share,
    /// Waiting for something that rank 0 knows.
    Tell,
    /// Waiting for what each has to say.
    Gather,
    /// Its oracle failed while it worked alone.
    Failed,
    /// It has ended.
    Finish,
}

const CALLS: [Call; 7] =
    [Call::Beat, Call::Sum, Call::Share, Call::Tell, Call::Gather, Call::Failed, Call::Finish];

/// Where a member is in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// Questions so far.
    pub(crate) questions: u64,
    /// The role of the last one, as a number, and its step.
    pub(crate) role: u64,
    pub(crate) step: u64,
    /// A hash of all of them.
    pub(crate) checksum: u64,
}

/// An oracle's failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) kind: ErrorKind,
    pub(crate) text: String,
}

/// The result of a member's work, or of that of several.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    Nothing,
    /// Nodes of a tree of so many leaves.
    Pieces(u64, Vec<Piece>),
    Words(Vec<u64>),
}

/// What a member, or a member and those below it, have to say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Report {
    pub(crate) rank: u64,
    pub(crate) call: Call,
    pub(crate) place: Position,
    /// Whether one of them was told to stop.
    pub(crate) stop: bool,
    /// The exit code of the first, and what it said, where it has ended.
    pub(crate) code: u64,
    pub(crate) words: String,
    /// The failure of the first that has one.
    pub(crate) trouble: Option<Trouble>,
    /// How two of them differ that should not.
    pub(crate) discord: Option<String>,
    pub(crate) body: Body,
}

/// What all members hear at the end of an exchange.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// Go on, with the result of all the work.
    Go(Vec<u64>),
    /// Stop: one of them was told to.
    Stop,
    /// Stop: an oracle failed, or they disagree.
    Failed(Trouble),
    /// All have ended, and are to exit so.
    Finished(u64),
}

/// When to talk next. Rank 0 decides, by its clock; no result depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manners {
    /// Questions that may pass without an exchange.
    pub(crate) quiet: u64,
    /// Work below which every member does all of it: sums, and rows.
    pub(crate) least: [u64; 2],
}

impl Report {
    /// Takes in the report of the members that follow.
    pub(crate) fn merge(&mut self, next: Self) {
        if self.discord.is_none() {
            self.discord = next.discord.clone().or_else(|| self.discord_with(&next));
        }
        self.stop |= next.stop;
        self.trouble = self.trouble.take().or(next.trouble);
        self.body = match (std::mem::replace(&mut self.body, Body::Nothing), next.body) {
            (Body::Pieces(leaves, mut mine), Body::Pieces(same, theirs)) if leaves == same => {
                mine.extend(theirs);
                Body::Pieces(leaves, join(leaves, mine))
            }
            (Body::Words(mut mine), Body::Words(theirs)) => {
                mine.extend(theirs);
                Body::Words(mine)
            }
            _ => Body::Nothing,
        };
        // A member that has ended is the exception as long as others have not.
        if self.call == Call::Finish && next.call != Call::Finish {
            (self.call, self.place) = (next.call, next.place);
        }
    }

    fn discord_with(&self, next: &Self) -> Option<String> {
        let ended = |one: &Self, other: &Self| {
            let said = if one.words.is_empty() { String::new() } else { format!(" ({})", one.words) };
            format!(
                "rank {} ended with exit code {}{said} while rank {} was at {}",
                one.rank,
                one.code,
                other.rank,
                other.place.words()
            )
        };
        match (self.call == Call::Finish, next.call == Call::Finish) {
            (true, true) => None,
            (true, false) => Some(ended(self, next)),
            (false, true) => Some(ended(next, self)),
            (false, false) if self.place == next.place && self.call == next.call => None,
            (false, false) => Some(format!(
                "the ranks disagree: rank {} is at {}, rank {} at {} (checksums {:016x} and {:016x})",
                self.rank,
                self.place.words(),
                next.rank,
                next.place.words(),
                self.place.checksum,
                next.place.checksum
            )),
        }
    }

    /// What rank 0 makes of the report of all.
    pub(crate) fn verdict(self) -> Verdict {
        let fatal = |text| Verdict::Failed(Trouble { kind: ErrorKind::Fatal, text });
        match self {
            Self { trouble: Some(trouble), .. } => Verdict::Failed(trouble),
            Self { call: Call::Finish, code, .. } => Verdict::Finished(code),
            Self { stop: true, .. } => Verdict::Stop,
            Self { discord: Some(text), .. } => fatal(text),
            Self { body: Body::Words(words), .. } => Verdict::Go(words),
            Self { body: Body::Pieces(leaves, pieces), .. } => match &pieces[..] {
                [whole] if whole.span == (0..leaves) => {
                    Verdict::Go(whole.sum.iter().map(|number| number.to_bits()).collect())
                }
                _ => fatal("the parts of a batch do not add to the whole".into()),
            },
            Self { call: Call::Beat, .. } => Verdict::Go(Vec::new()),
            Self { .. } => fatal("a part of an answer is missing".into()),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u64> {
        let Position { questions, role, step, checksum } = self.place;
        let call = CALLS.iter().position(|call| *call == self.call).unwrap_or(0) as u64;
        let mut to = vec![self.rank, call, questions, role, step, checksum, u64::from(self.stop), self.code];
        put_text(&mut to, &self.words);
        to.push(u64::from(self.trouble.is_some()));
        self.trouble.iter().for_each(|trouble| put_trouble(&mut to, trouble));
        put_text(&mut to, self.discord.as_deref().unwrap_or(""));
        match &self.body {
            Body::Nothing => to.push(0),
            Body::Pieces(leaves, pieces) => {
                to.extend([1, *leaves, pieces.len() as u64]);
                for Piece { span, sum } in pieces {
                    to.extend([span.start, span.end, sum.len() as u64]);
                    to.extend(sum.iter().map(|number| number.to_bits()));
                }
            }
            Body::Words(words) => {
                to.extend([2, words.len() as u64]);
                to.extend(words);
            }
        }
        to
    }

    pub(crate) fn decode(words: &[u64]) -> Option<Self> {
        let mut from = Reader(words);
        let [rank, call, questions, role, step, checksum, stop, code] = from.some()?;
        let report = Self {
            rank,
            call: *CALLS.get(call as usize)?,
            place: Position { questions, role, step, checksum },
            stop: stop != 0,
            code,
            words: from.text()?,
            trouble: if from.word()? == 0 { None } else { Some(from.trouble()?) },
            discord: Some(from.text()?).filter(|text| !text.is_empty()),
            body: from.body()?,
        };
        from.0.is_empty().then_some(report)
    }
}

impl Position {
    pub(crate) fn words(&self) -> String {
        let Self { questions, role, step, .. } = self;
        match usize::try_from(*role)
            .ok()
            .and_then(|role| pasta_opt::draws::Role::ALL.get(role.wrapping_sub(1)))
        {
            Some(role) => format!("question {questions} (role {role:?}, step {step})"),
            None => format!("question {questions}"),
        }
    }
}

impl Verdict {
    pub(crate) fn encode(&self, manners: Manners) -> Vec<u64> {
        let Manners { quiet, least: [sums, rows] } = manners;
        let mut to = vec![quiet, sums, rows];
        match self {
            Self::Go(words) => {
                to.push(0);
                to.extend(words);
            }
            Self::Stop => to.push(1),
            Self::Failed(trouble) => {
                to.push(2);
                put_trouble(&mut to, trouble);
            }
            Self::Finished(code) => to.extend([3, *code]),
        }
        to
    }

    pub(crate) fn decode(words: &[u64]) -> Option<(Self, Manners)> {
        let mut from = Reader(words);
        let [quiet, sums, rows, what] = from.some()?;
        let verdict = match what {
            0 => Self::Go(from.0.to_vec()),
            1 => Self::Stop,
            2 => Self::Failed(from.trouble()?),
            3 => Self::Finished(from.word()?),
            _ => return None,
        };
        Some((verdict, Manners { quiet, least: [sums, rows] }))
    }
}

/// Bytes as words: their number, then eight to a word.
pub(crate) fn put_bytes(to: &mut Vec<u64>, bytes: &[u8]) {
    to.push(bytes.len() as u64);
    to.extend(bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    }));
}

/// What [`put_bytes`] put.
pub(crate) fn take_bytes(words: &[u64]) -> Option<Vec<u8>> {
    Reader(words).bytes()
}

/// What several [`put_bytes`] put one after another.
pub(crate) fn take_all_bytes(words: &[u64]) -> Option<Vec<Vec<u8>>> {
    let mut from = Reader(words);
    let mut all = Vec::new();
    while !from.0.is_empty() {
        all.push(from.bytes()?);
    }
    Some(all)
}

fn put_text(to: &mut Vec<u64>, text: &str) {
    put_bytes(to, text.as_bytes());
}

fn put_trouble(to: &mut Vec<u64>, Trouble { kind, text }: &Trouble) {
    to.push(u64::from(*kind == ErrorKind::TimedOut));
    put_text(to, text);
}

/// Takes words off the front; `None` where there are too few.
struct Reader<'w>(&'w [u64]);

impl Reader<'_> {
    fn some<const N: usize>(&mut self) -> Option<[u64; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn word(&mut self) -> Option<u64> {
        self.some().map(|[word]| word)
    }

    fn words(&mut self, count: usize) -> Option<&[u64]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.word()?).ok()?;
        let words = self.words(length.div_ceil(8))?;
        let mut bytes: VecDeque<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(length);
        Some(bytes.into())
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    fn trouble(&mut self) -> Option<Trouble> {
        let kind = if self.word()? == 0 { ErrorKind::Fatal } else { ErrorKind::TimedOut };
        Some(Trouble { kind, text: self.text()? })
    }

    fn body(&mut self) -> Option<Body> {
        match self.word()? {
            0 => Some(Body::Nothing),
            1 => {
                let [leaves, count] = self.some()?;
                let pieces = (0..count).map(|_| {
                    let [start, end, length] = self.some()?;
                    let sum = self.words(usize::try_from(length).ok()?)?;
                    Some(Piece {
                        span: start..end,
                        sum: sum.iter().map(|word| f64::from_bits(*word)).collect(),
                    })
                });
                Some(Body::Pieces(leaves, pieces.collect::<Option<_>>()?))
            }
            2 => {
                let length = usize::try_from(self.word()?).ok()?;
                Some(Body::Words(self.words(length)?.to_vec()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use pasta_opt::draws::{Address, Role};
    use pasta_opt::oracle::ErrorKind;

    use super::{
        Body, Call, Manners, Piece, Position, Report, Trouble, Verdict, put_bytes, take_all_bytes, take_bytes,
    };

    fn report(rank: u64) -> Report {
        Report {
            rank,
            call: Call::Sum,
            place: Position { questions: 7, role: 1, step: 6, checksum: 5 },
            stop: false,
            code: 0,
            words: String::new(),
            trouble: None,
            discord: None,
            body: Body::Pieces(2, vec![Piece { span: rank..rank + 1, sum: vec![rank as f64, 0.5] }]),
        }
    }

    #[test]
    fn reports_and_verdicts_are_read_back_and_nothing_shorter_is() {
        let full = Report {
            stop: true,
            code: 143,
            words: "error: p.toml:3: größer".into(),
            trouble: Some(Trouble { kind: ErrorKind::TimedOut, text: "late".into() }),
            discord: Some("they differ".into()),
            ..report(1)
        };
        let words = Report { body: Body::Words(vec![1, 2, 3]), ..report(2) };
        for report in
            [report(0), full, words, Report { body: Body::Nothing, call: Call::Finish, ..report(3) }]
        {
            let encoded = report.encode();
            assert_eq!(Report::decode(&encoded).unwrap(), report);
            assert!((0..encoded.len()).all(|short| Report::decode(&encoded[..short]).is_none()));
        }
        let manners = Manners { quiet: 3, least: [5, 8] };
        let trouble = Trouble { kind: ErrorKind::Fatal, text: "broken".into() };
        for verdict in
            [Verdict::Go(vec![4, 5]), Verdict::Stop, Verdict::Failed(trouble), Verdict::Finished(3)]
        {
            assert_eq!(Verdict::decode(&verdict.encode(manners)).unwrap(), (verdict, manners));
        }
        for bytes in [&b""[..], b"1234567", b"12345678", b"123456789"] {
            let mut words = Vec::new();
            put_bytes(&mut words, bytes);
            assert_eq!(take_bytes(&words).unwrap(), bytes);
        }
    }

    fn merged(first: Report, second: Report) -> Verdict {
        let mut first = first;
        first.merge(second);
        first.verdict()
    }

    #[test]
    fn all_hear_of_failures_then_of_stops_then_of_discord() {
        assert_eq!(merged(report(0), report(1)), Verdict::Go(vec![1.0f64.to_bits(), 1.0f64.to_bits()]));
        let elsewhere =
            Report { place: Position { questions: 8, role: 2, step: 7, checksum: 1 }, ..report(1) };
        let Verdict::Failed(trouble) = merged(report(0), elsewhere.clone()) else { panic!("they agree") };
        let text = "the ranks disagree: rank 0 is at question 7 (role Large, step 6), rank 1 at question 8 (role Small, step 7)";
        assert!(trouble.text.starts_with(text), "{}", trouble.text);
        assert_eq!(merged(report(0), Report { stop: true, ..elsewhere.clone() }), Verdict::Stop);
        let trouble = Trouble { kind: ErrorKind::Fatal, text: "broken".into() };
        let failed = Report { stop: true, trouble: Some(trouble.clone()), ..elsewhere };
        assert_eq!(merged(report(0), failed.clone()), Verdict::Failed(trouble.clone()));
        assert_eq!(merged(failed, report(1)), Verdict::Failed(trouble));
    }

    #[test]
    fn a_member_that_ends_alone_ends_all_and_all_exit_as_the_first() {
        let ended = |rank, code| Report {
            call: Call::Finish,
            code,
            words: "error: no disk".into(),
            body: Body::Nothing,
            ..report(rank)
        };
        for verdict in [merged(report(0), ended(1, 4)), merged(ended(0, 4), report(1))] {
            let Verdict::Failed(trouble) = verdict else { panic!("{verdict:?}") };
            assert!(
                trouble.text.contains("ended with exit code 4 (error: no disk) while rank"),
                "{}",
                trouble.text
            );
        }
        assert_eq!(merged(ended(0, 4), ended(1, 1)), Verdict::Finished(4));
    }

    /// Words with something changed at random, as damaged memory or another version would send them: they are read or refused, reports are merged, and nothing
    /// panics or takes long. `FUZZ_CASES=1000000` tries more.
    #[test]
    fn damaged_messages_are_read_or_refused() {
        let trials = std::env::var("FUZZ_CASES").map_or(3000, |n| n.parse().unwrap());
        let trouble = Some(Trouble { kind: ErrorKind::Fatal, text: "broken".into() });
        let texts =
            Report { words: "error".into(), discord: Some("they differ".into()), trouble, ..report(1) };
        let words = Report { body: Body::Words(vec![1, 2, 3]), ..report(2) };
        let messages = [report(0), report(1), texts, words].map(|report| report.encode());
        let (mut read, mut refused) = (0, 0);
        for trial in 0..trials {
            let address = Address { seed: 4, role: Role::Setup, step: 0, sample: trial };
            let mut xi = address.stream();
            let mut damaged = || {
                let mut words = messages[xi.below(4) as usize].clone();
                for _ in 0..=xi.below(3) {
                    let at = xi.below(words.len() as u64) as usize;
                    match xi.below(5) {
                        0 => words[at] ^= 1 << xi.below(64),
                        1 => words[at] = xi.below(9),
                        2 => words[at] = u64::MAX - xi.below(3),
                        3 => words.truncate(at + 1),
                        _ => words.insert(at, xi.below(u64::MAX)),
                    }
                }
                words
            };
            let (one, two) = (damaged(), damaged());
            drop((Verdict::decode(&one), take_bytes(&one), take_all_bytes(&one)));
            match (Report::decode(&one), Report::decode(&two)) {
                (Some(mut one), Some(two)) => {
                    one.merge(two);
                    drop(one.verdict());
                    read += 1;
                }
                _ => refused += 1,
            }
        }
        assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
    }
}
