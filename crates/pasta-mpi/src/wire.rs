//! How words get from one member to another.

use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A member is gone that was to be heard from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone {
    /// Which.
    pub rank: usize,
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} is gone", self.rank)
    }
}

impl std::error::Error for Gone {}

/// The way from one member to all others. Messages between two members arrive in the order in which they were sent.
pub trait Wire: Send {
    /// The number of this member, from 0.
    fn rank(&self) -> usize;

    /// How many members there are.
    fn size(&self) -> usize;

    /// Sends a message. May wait until it is received.
    fn send(&mut self, to: usize, words: &[u64]) -> Result<(), Gone>;

    /// Waits for a message.
    fn receive(&mut self, from: usize) -> Result<Vec<u64>, Gone>;
}

/// The wire of a member that is a thread of this process.
#[derive(Debug)]
pub struct Local {
    rank: usize,
    to: Vec<Sender<Vec<u64>>>,
    from: Vec<Receiver<Vec<u64>>>,
}

impl Local {
    /// The wires of so many threads: to try out on one machine what will run on many.
    pub fn wires(size: usize) -> Vec<Self> {
        let mut wires: Vec<_> =
            (0..size).map(|rank| Self { rank, to: Vec::new(), from: Vec::new() }).collect();
        for sender in 0..size {
            for receiver in 0..size {
                let (to, from) = channel();
                wires[sender].to.push(to);
                wires[receiver].from.push(from);
            }
        }
        wires
    }
}

impl Wire for Local {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn send(&mut self, to: usize, words: &[u64]) -> Result<(), Gone> {
        self.to[to].send(words.to_vec()).map_err(|_| Gone { rank: to })
    }

    fn receive(&mut self, from: usize) -> Result<Vec<u64>, Gone> {
        self.from[from].recv().map_err(|_| Gone { rank: from })
    }
}
