//! The terminal in the hands of the show, and given back however the show ends.

use std::io::{IsTerminal, Result, Stdout, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::crossterm::{cursor, execute};
use tokio::sync::mpsc;

/// The smallest window the show fits in.
pub(super) const SMALLEST: (u16, u16) = (78, 22);

/// How long the keyboard is listened to before looking whether the show is over.
const GLANCE: Duration = Duration::from_millis(50);

/// The full screen; dropping it gives the terminal back as it was.
pub(super) struct Screen {
    pub canvas: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal, if there is one that is able and large enough.
    pub(super) fn open() -> Option<Self> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let fits = size().is_ok_and(|(width, height)| width >= SMALLEST.0 && height >= SMALLEST.1);
        if dumb || !fits || !stdout().is_terminal() {
            return None;
        }
        restore_on_panic();
        let canvas = enter().and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        if canvas.is_err() {
            leave();
        }
        canvas.ok().map(|canvas| Self { canvas })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Whether the terminal has to be given back: leaving the full screen twice would move the cursor.
static TAKEN: AtomicBool = AtomicBool::new(false);

fn enter() -> Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, cursor::Hide)
}

/// Does what it can: there is nobody left to tell.
fn leave() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = execute!(stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}

/// The message of a panic would vanish with the alternate screen.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            leave();
            before(panic);
        }));
    });
}

/// Says once when q, Esc or Ctrl-C is pressed. The thread ends with the receiver.
pub(super) fn quit_keys() -> mpsc::Receiver<()> {
    let (sender, pressed) = mpsc::channel(1);
    std::thread::spawn(move || {
        while !sender.is_closed() {
            match event::poll(GLANCE) {
                Ok(true) if event::read().is_ok_and(|event| quits(&event)) => {
                    let _ = sender.try_send(());
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
    });
    pressed
}

fn quits(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press
        && (matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc)
            || control && matches!(key.code, KeyCode::Char('c' | 'C' | 'd' | 'D')))
}
