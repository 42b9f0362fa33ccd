//! The console hears what `pasta-io` has to say.

use std::io::{self, IsTerminal, Write};

use pasta_io::{Listener, Watch, words};

use super::{Bar, is_muted, pass_on, say, say_over_bar};

struct Console;

/// From here on what files and simulators have to say goes to stderr, and questions to the terminal.
pub fn listen() {
    pasta_io::listen(&Console);
}

impl Listener for Console {
    fn say(&self, line: &str) {
        say(line);
    }

    fn say_meanwhile(&self, line: &str) {
        say_over_bar(line);
    }

    fn pass_on(&self, line: &str) {
        pass_on(line);
    }

    fn agrees(&self, question: &str) -> bool {
        if is_muted() || !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return false;
        }
        let _ = write!(io::stderr(), "{question} [y/N] ");
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
    }

    fn follow(&self, read: &mut dyn FnMut(Watch<'_>)) {
        let bar = Bar::of(0);
        read(&|read: u64, size: Option<u64>| {
            bar.set(read, size.unwrap_or(read));
            bar.say(format!("reading, {} MB", words::grouped(read / 1_000_000)));
        });
    }
}
