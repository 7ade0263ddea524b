//! The scene as lines of text in a window of any size.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::scene::{Lane, Scene, WorkerState};
use super::words::{Tone, grouped};

/// A wait long enough to be told.
const LONG_WAIT: Duration = Duration::from_millis(400);

/// Colours, or none where people do not want them.
#[derive(Clone, Copy)]
pub(super) struct Palette {
    pub colours: bool,
}

impl Palette {
    fn style(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    fn tone(self, tone: Tone) -> Style {
        match tone {
            Tone::Head => Style::new().add_modifier(Modifier::BOLD),
            Tone::Plain => Style::new(),
            Tone::Good => self.style(Color::Green),
            Tone::Bad => self.style(Color::Red),
        }
    }

    fn faint(self) -> Style {
        self.style(Color::DarkGray)
    }
}

/// All lines of a window; the newest of what was said stands last.
pub(super) fn lines(
    scene: &Scene,
    width: u16,
    height: u16,
    now: Instant,
    palette: Palette,
) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(width), usize::from(height));
    let mut lines = vec![
        title(scene, width, palette),
        Line::styled(format!(" {}", headline(scene.act)), palette.tone(Tone::Head)),
        shelf(scene, width, palette),
        figures(scene, palette),
        rule("workers", width, palette),
    ];
    let workers = scene.lanes.iter().enumerate();
    lines.extend(workers.map(|(number, lane)| row(number + 1, lane, scene, width, now, palette)));
    lines.push(rule("what happens", width, palette));
    let room = height.saturating_sub(lines.len());
    lines.extend(newest(scene, width.saturating_sub(2), room, palette));
    lines
}

/// As much of what was said last as there is room for, nothing without its beginning.
fn newest(scene: &Scene, width: usize, room: usize, palette: Palette) -> Vec<Line<'static>> {
    let mut lines = VecDeque::new();
    for (tone, text) in scene.said.iter().rev() {
        let said = wrap(text, width);
        if lines.len() + said.len() > room {
            break;
        }
        for line in said.into_iter().rev() {
            lines.push_front(Line::styled(format!(" {line}"), palette.tone(*tone)));
        }
    }
    lines.into()
}

fn title(scene: &Scene, width: usize, palette: Palette) -> Line<'static> {
    let (left, right) = (format!(" fencelock demo · locks on {}", scene.store), "q quits ");
    let gap = width.saturating_sub(left.chars().count() + right.len());
    Line::from(vec![
        Span::raw(left),
        Span::styled(format!("{}{right}", " ".repeat(gap)), palette.faint()),
    ])
}

fn headline(act: u32) -> &'static str {
    match act {
        0 => "The workers come in",
        1 => "1 of 3  Without a lock: read the stock, think, write the stock less one",
        2 => "2 of 3  With a lock: only its holder sells, and shows its token",
        _ => "3 of 3  A counter: 100 tasks add one each, ten times",
    }
}

fn shelf(scene: &Scene, width: usize, palette: Palette) -> Line<'static> {
    let (name, count) = (" stock ", format!(" {:>5} ", grouped(scene.stock)));
    let share = scene.stock.max(0) as f64 / f64::from(scene.pieces.max(1));
    let room = width.saturating_sub(name.len() + count.len());
    let (full, empty) = bar(share, room);
    Line::from(vec![
        Span::raw(name),
        Span::styled(full, palette.style(Color::Cyan)),
        Span::styled(empty, palette.faint()),
        Span::raw(count),
    ])
}

fn figures(scene: &Scene, palette: Palette) -> Line<'static> {
    let loud = |on: bool, tone| if on { palette.tone(tone) } else { Style::new() };
    Line::from(vec![
        Span::raw(format!(" sold {:>5} of {}", grouped(scene.sold), grouped(scene.pieces))),
        Span::raw("  "),
        Span::styled(
            format!("too many {}", grouped(scene.oversold)),
            loud(scene.oversold > 0, Tone::Bad),
        ),
        Span::raw(format!("  hand-overs {}", grouped(scene.hand_overs))),
        Span::raw("  "),
        Span::styled(
            format!("stale writes refused {}", scene.refused),
            loud(scene.refused > 0, Tone::Good),
        ),
    ])
}

fn rule(name: &str, width: usize, palette: Palette) -> Line<'static> {
    let rest = "─".repeat(width.saturating_sub(name.len() + 5));
    Line::styled(format!(" ─ {name} {rest}"), palette.faint())
}

fn row(
    number: usize,
    lane: &Lane,
    scene: &Scene,
    width: usize,
    now: Instant,
    palette: Palette,
) -> Line<'static> {
    let (word, style) = state(lane.state, palette);
    let head = format!(" {number:>2} {:>4} sold  ", lane.served);
    let mut spans =
        vec![Span::styled(head, palette.faint()), Span::styled(format!("{word:<9}"), style)];
    if let Some(end) = lane.lease_end {
        let left = end.saturating_duration_since(now);
        let share = left.as_secs_f64() / scene.ttl.as_secs_f64().max(0.001);
        let (full, empty) = bar(share.min(1.0), (width / 2).saturating_sub(24));
        spans.push(Span::styled(full, style));
        spans.push(Span::styled(empty, palette.faint()));
        let left =
            if left.is_zero() { "over".to_owned() } else { format!("{:.1} s", left.as_secs_f64()) };
        spans.push(Span::raw(format!(" {left:<5} token {}", lane.token)));
        return Line::from(spans);
    }
    let waited = now.saturating_duration_since(lane.since);
    let detail = match lane.state {
        WorkerState::Waiting if waited > LONG_WAIT => {
            format!("for {:.1} s", waited.as_secs_f64())
        }
        WorkerState::Waiting => format!("customer {}", grouped(lane.buyer)),
        WorkerState::Raced { piece, again: false } => {
            format!("piece {:<6} to customer {}", grouped(piece), grouped(lane.buyer))
        }
        WorkerState::Raced { piece, again: true } => {
            format!("piece {:<6} to customer {}, AGAIN", grouped(piece), grouped(lane.buyer))
        }
        _ => String::new(),
    };
    spans.push(Span::styled(detail, if style == palette.faint() { style } else { Style::new() }));
    Line::from(spans)
}

fn state(state: WorkerState, palette: Palette) -> (&'static str, Style) {
    let bold = |colour| palette.style(colour).add_modifier(Modifier::BOLD);
    match state {
        WorkerState::Idle => ("", palette.faint()),
        WorkerState::Waiting => ("waiting", palette.faint()),
        WorkerState::Holding => ("HOLDING", bold(Color::Green)),
        WorkerState::Writing => ("WRITING", bold(Color::Cyan)),
        WorkerState::Raced { again: false, .. } => ("sold", Style::new()),
        WorkerState::Raced { again: true, .. } => ("sold", palette.style(Color::Red)),
        WorkerState::Killed => ("KILLED", bold(Color::Red)),
        WorkerState::Frozen => ("FROZEN", bold(Color::Yellow)),
        WorkerState::Refused => ("REFUSED", bold(Color::Magenta)),
        WorkerState::Counting => ("counting", palette.style(Color::Cyan)),
    }
}

fn bar(share: f64, room: usize) -> (String, String) {
    let full = (share.clamp(0.0, 1.0) * room as f64).round() as usize;
    ("█".repeat(full), "░".repeat(room - full))
}

/// Breaks text at spaces, but not at those that hold a number and its unit together; the lines after the first are set in
/// a little.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut words = text.split(' ').map(|word| word.replace('\u{a0}', " "));
    let mut line = words.next().unwrap_or_default();
    let mut lines = Vec::new();
    for word in words {
        if line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut line, "  ".to_owned()));
        } else {
            line.push(' ');
        }
        line.push_str(&word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::event::Event;

    fn scene() -> Scene {
        let mut scene = Scene::new();
        let store = "SQLite".to_owned();
        scene.apply(&Event::Opened {
            pieces: 1000,
            buyers: 1400,
            workers: 12,
            seed: 7,
            ttl_ms: 2000,
            store: store.clone(),
        });
        scene.apply(&Event::WithLock { store, ttl_ms: 2000 });
        let token = (1 << 53) - 1;
        scene.apply(&Event::Granted { worker: 3, buyer: 1400, token, waited_us: 1, left_ms: 1980 });
        scene.apply(&Event::Killed { worker: 3, pid: 1, token });
        for worker in 4..=12 {
            scene.apply(&Event::Waiting { worker, buyer: 1400 });
        }
        (scene.sold, scene.oversold, scene.hand_overs, scene.refused) = (1400, 400, 1400, 9);
        scene
    }

    #[test]
    fn the_scene_fits_the_window_and_fills_it_with_the_newest_words() {
        for (width, height) in [super::super::terminal::SMALLEST, (80, 24), (120, 40)] {
            let scene = scene();
            let now = Instant::now();
            let lines = lines(&scene, width, height, now, Palette { colours: true });
            assert!(lines.len() <= usize::from(height), "{} lines in {height}", lines.len());
            for line in &lines {
                assert!(line.width() <= usize::from(width), "{width}: {line}");
            }
            assert!(lines.last().unwrap().to_string().ends_with("hold to end."), "{lines:?}");
            assert!(lines[7].to_string().contains("KILLED"), "{}", lines[7]);
        }
    }

    #[test]
    fn without_colours_there_are_none() {
        let lines = lines(&scene(), 80, 24, Instant::now(), Palette { colours: false });
        let spans = lines
            .iter()
            .flat_map(|line| line.spans.iter().map(|span| line.style.patch(span.style)));
        assert!(spans.into_iter().all(|style| style.fg.is_none() && style.bg.is_none()));
    }

    #[test]
    fn long_text_is_broken_at_spaces() {
        assert_eq!(wrap("one two three", 8), ["one two", "  three"]);
        assert_eq!(wrap("  1  2\u{a0}s", 6), ["  1 ", "  2 s"]);
        assert_eq!(wrap("", 8), [""]);
    }
}
