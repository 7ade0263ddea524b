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

    /// Waits until the terminal takes whole lines again, as a shell's does.
    pub(crate) fn sees_whole_lines(&mut self) {
        self.press("stty -a | grep -o ' -*icanon'; echo lines' 'asked\n");
        let modes = self.see("lines asked");
        assert!(modes.contains(" icanon"), "{modes}");
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the window showed of a program that draws in it: a picture for each time it was done drawing.
pub(crate) fn pictures(written: &str) -> Vec<String> {
    let empty = vec![vec![' '; WIDTH.into()]; HEIGHT.into()];
    let (mut cells, mut row, mut column) = (empty.clone(), 0, 0);
    let mut pictures = Vec::new();
    let mut rest = written.chars();
    while let Some(next) = rest.next() {
        if next != '\x1b' {
            if let Some(cell) =
                cells.get_mut(row).and_then(|line: &mut Vec<char>| line.get_mut(column))
            {
                *cell = next;
            }
            column += 1;
            continue;
        }
        let mut sequence = rest.by_ref().skip_while(|part| *part == '[');
        let mut numbers = String::new();
        let end = sequence.find(|part| {
            let ends = part.is_ascii_alphabetic();
            numbers.extend((!ends).then_some(*part));
            ends
        });
        match end {
            Some('H') => {
                let mut place = numbers.split(';').map(|number| number.parse().unwrap_or(1) - 1);
                (row, column) = (place.next().unwrap_or(0), place.next().unwrap_or(0));
            }
            Some('J') => cells.clone_from(&empty),
            // The end of a drawing: all colours as they were.
            Some('m') if numbers == "0" => {
                let lines = cells.iter().map(|line| line.iter().collect::<String>());
                pictures.push(lines.collect::<Vec<_>>().join("\n"));
            }
            _ => {}
        }
    }
    pictures
}
