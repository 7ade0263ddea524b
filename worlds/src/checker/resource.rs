//! The resource that a lock protects: a counter behind a gate, which must end at exactly the number of writes it took.

use fencelock::{Gate, Token};

use super::{Checker, Rule, lock_key};

impl Checker {
    /// Reads the resource of a lock, which shuts out all older tokens; `None` if a newer one has been here.
    pub fn read(&self, gate: &Gate, lock: usize, token: Token) -> Option<u64> {
        let read = gate.write(lock_key(lock).as_str(), token, || self.book().locks[lock].value);
        self.passed(lock, token, read.is_ok());
        read.ok()
    }

    /// Writes the resource, if no newer token has been here.
    pub fn write(&self, gate: &Gate, lock: usize, token: Token, value: u64) {
        let wrote = gate.write(lock_key(lock).as_str(), token, || {
            let shared = &mut self.book().locks[lock];
            shared.value = value;
            shared.accepted += 1;
        });
        self.passed(lock, token, wrote.is_ok());
    }

    fn passed(&self, lock: usize, token: Token, passed: bool) {
        let at = self.now();
        let mut book = self.book();
        let newest = book.locks[lock].wrote;
        if !passed {
            book.figures.refusals += 1;
            if self.rules.calm() {
                book.violated(at, Rule::StaleWrite, format!("{token} came after {newest}"));
            }
            return;
        }
        if token < newest {
            book.violated(at, Rule::StaleWrite, format!("{token} passed the gate after {newest}"));
        }
        book.locks[lock].wrote = newest.max(token);
    }

    /// Compares every resource with the writes it took.
    pub fn take_stock(&self) {
        let at = self.now();
        let mut book = self.book();
        for lock in 0..book.locks.len() {
            let (value, accepted) = (book.locks[lock].value, book.locks[lock].accepted);
            if value != accepted && !self.rules.forgets_tokens {
                let detail = format!("resource {lock} is at {value} after {accepted} writes");
                book.violated(at, Rule::StaleWrite, detail);
            }
        }
    }
}
