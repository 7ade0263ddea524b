//! A shell on a terminal, with somebody who types and reads.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use nix::pty::Winsize;

use super::Scene;

/// The terminal's window.
const WIDTH: u16 = 100;
const HEIGHT: u16 = 30;

/// An interactive shell on a terminal of its own.
pub(crate) struct Shell {
    process: Child,
    keys: File,
    screen: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Shell {
    pub(crate) fn new(scene: &Scene) -> Self {
        let window = Winsize { ws_row: HEIGHT, ws_col: WIDTH, ws_xpixel: 0, ws_ypixel: 0 };
        let terminal = nix::pty::openpty(&window, None).unwrap();
        let side = || Stdio::from(terminal.slave.try_clone().unwrap());
        let mut command = Command::new("setsid");
        // Whoever runs these tests in the background has them ignore what a terminal's keys send.
        command.args(["--ctty", "--wait", "env", "--default-signal=INT,QUIT,HUP"]);
        command.args(["bash", "--norc", "--noprofile", "--noediting", "-i"]);
        command.env("FENCELOCK_URL", scene.url()).env("FENCELOCK", env!("CARGO_BIN_EXE_fencelock"));
        command.env("PS1", "").stdin(side()).stdout(side()).stderr(side());
        let process = command.spawn().unwrap();
        let keys = File::from(terminal.master);
        let mut screen_side = keys.try_clone().unwrap();
        let (sender, screen) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = screen_side.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut shell = Self { process, keys, screen, seen: Vec::new() };
        shell.press("stty -echo; echo shell is' 'ready\n");
        shell.see("shell is ready");
        shell
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this text was written, after what was waited for before; answers all that was written meanwhile.
    pub(crate) fn see(&mut self, text: &str) -> String {
        loop {
            let found = self.seen.windows(text.len()).position(|seen| seen == text.as_bytes());
            if let Some(at) = found {
                let until_then = self.seen.drain(..at + text.len()).collect();
                return String::from_utf8(until_then).unwrap();
            }
            let more = self.screen.recv_timeout(Duration::from_secs(30));
            let seen = String::from_utf8_lossy(&self.seen);
            self.seen.extend(more.unwrap_or_else(|_| panic!("no `{text}` in {seen:?}")));
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
