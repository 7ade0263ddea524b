//! Where the show is seen: on the full screen, as plain lines, or as JSON.

use std::io::{IsTerminal, Result, Write, stdout};
use std::time::Instant;

use ratatui::crossterm::terminal::size;
use ratatui::text::Text;

use super::draw::{self, Palette};
use super::event::Event;
use super::scene::Scene;
use super::terminal::{SMALLEST, Screen};
use super::verdict::Verdict;
use super::words::{self, Tone};

pub(super) enum Output {
    Screen(Box<(Screen, Scene, Palette)>),
    Plain,
    Json { began: Instant },
}

/// The widest plain text, where the window does not say otherwise.
const COLUMN: usize = 100;

impl Output {
    /// The full screen if the terminal has room for it, plain lines otherwise.
    pub(super) fn best() -> Self {
        let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        match Screen::open() {
            Some(screen) => Self::Screen(Box::new((screen, Scene::new(), Palette { colours }))),
            None => Self::Plain,
        }
    }

    pub(super) fn is_screen(&self) -> bool {
        matches!(self, Self::Screen(_))
    }

    /// Shows what happened. On the full screen it is seen with the next [`Output::draw`].
    pub(super) fn show(&mut self, event: &Event) -> Result<()> {
        match self {
            Self::Screen(show) => show.1.apply(event),
            Self::Plain => {
                if let Some((tone, text)) = words::line(event) {
                    say(tone, &text)?;
                }
            }
            Self::Json { began } => {
                let mut line = serde_json::to_value(event)?;
                line["at_ms"] = serde_json::json!(began.elapsed().as_millis() as u64);
                writeln!(stdout(), "{line}")?;
            }
        }
        Ok(())
    }

    /// Draws the full screen anew.
    pub(super) fn draw(&mut self) -> Result<()> {
        let Self::Screen(show) = self else { return Ok(()) };
        let (screen, scene, palette) = &mut **show;
        screen.canvas.draw(|frame| {
            let area = frame.area();
            let text = if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
                Text::from(format!("The show needs {} x {}.", SMALLEST.0, SMALLEST.1))
            } else {
                Text::from(draw::lines(scene, area.width, area.height, Instant::now(), *palette))
            };
            frame.render_widget(text, area);
        })?;
        Ok(())
    }

    /// Gives the terminal back and tells how it went; what was told on the full screen is told again, to stay.
    pub(super) fn end(self, verdict: Verdict) -> Result<()> {
        match self {
            Self::Json { .. } => {
                let mut output = self;
                return output.show(&Event::Verdict(Box::new(verdict)));
            }
            Self::Screen(show) => {
                let (screen, scene, _) = *show;
                drop(screen);
                for (tone, text) in scene.said {
                    say(tone, &text)?;
                }
            }
            Self::Plain => {}
        }
        writeln!(stdout())?;
        for (_, text) in words::verdict(&verdict) {
            for line in draw::wrap(&text, column()) {
                writeln!(stdout(), "{line}")?;
            }
        }
        Ok(())
    }
}

fn say(tone: Tone, text: &str) -> Result<()> {
    let mut out = stdout().lock();
    let margin = if tone == Tone::Head {
        writeln!(out)?;
        ""
    } else {
        "   "
    };
    for line in draw::wrap(text, column() - margin.len()) {
        writeln!(out, "{margin}{line}")?;
    }
    out.flush()
}

fn column() -> usize {
    let window = stdout().is_terminal().then(size).and_then(Result::ok);
    window.map_or(COLUMN, |(width, _)| usize::from(width).clamp(20, COLUMN))
}
