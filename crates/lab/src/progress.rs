//! One line on the terminal that says what is going on; nothing where standard error is no
//! terminal.

use std::fmt::Display;
use std::io::{IsTerminal, Write, stderr};

pub struct Progress {
    live: bool,
}

impl Progress {
    /// A line if standard error is a terminal.
    pub fn new() -> Progress {
        Progress {
            live: stderr().is_terminal(),
        }
    }

    /// Puts `text` in the place of what the line said.
    pub fn say(&self, text: impl Display) {
        if self.live {
            // Written at once, so that another thread's log line cannot fall in between. If the
            // terminal is gone, nobody is there to be told.
            let _ = stderr().write_all(format!("\r\x1b[2K{text}").as_bytes());
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.say("");
    }
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::new()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
