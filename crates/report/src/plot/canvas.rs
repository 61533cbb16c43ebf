//! The shapes of plots, written as SVG.

use std::fmt::Write;

/// Escaped text for elements and attributes of SVG and HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // XML does not allow control characters, not even escaped.
            c if c.is_control() && !matches!(c, '\n' | '\t') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// A coordinate with at most one decimal.
pub(super) fn n(x: f64) -> String {
    let tenths = (x * 10.0).round() as i64;
    if tenths % 10 == 0 {
        format!("{}", tenths / 10)
    } else {
        format!(
            "{}{}.{}",
            if tenths < 0 { "-" } else { "" },
            (tenths / 10).abs(),
            (tenths % 10).abs()
        )
    }
}

/// The point of a text that its coordinates give.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The shape of a mark. Shape distinguishes series as well as colour does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    /// A dashed line, by the number of its pattern.
    Broken(usize),
    Cross,
    Triangle,
    Diamond,
    Square,
    Ring,
    Dot,
    Dash,
    /// A translucent area.
    Band,
    /// A line in a legend: the number of its dash pattern, and of the mark on it if its points have one.
    Line {
        dash: usize,
        mark: Option<usize>,
    },
}

const MARKS: [Mark; 5] = [Mark::Dot, Mark::Square, Mark::Triangle, Mark::Diamond, Mark::Ring];

/// Dash patterns of lines. The numbers of colours, marks and dash patterns are pairwise coprime, so 140 lines look
/// different.
const DASHES: [&str; 4] = ["", "8 3", "2.5 2.5", "9 3 2 3"];

/// The mark of the `i`th line.
pub(super) fn mark(i: usize) -> Mark {
    MARKS[i % MARKS.len()]
}

/// The dash attribute of the `i`th line; the first line is solid.
pub(super) fn dashes(i: usize) -> String {
    match DASHES[i % DASHES.len()] {
        "" => String::new(),
        dash => format!(" stroke-dasharray=\"{dash}\""),
    }
}

/// A drawing in progress.
#[derive(Default)]
pub(super) struct Canvas {
    pub(super) body: String,
}

impl Canvas {
    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\"{anchor}>{}</text>",
            n(x),
            n(y),
            escape(text)
        );
    }

    /// Text rotated upwards, for a vertical axis.
    pub(super) fn vertical_text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let (x, y) = (n(x), n(y));
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" \
             transform=\"rotate(-90 {x} {y})\">{}</text>",
            escape(text)
        );
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64), width: f64) {
        let path = format!("M{} {}L{} {}", n(from.0), n(from.1), n(to.0), n(to.1));
        self.path(class, &path, width, "");
    }

    /// An open path; `extra` holds further attributes.
    pub(super) fn path(&mut self, class: &str, path: &str, width: f64, extra: &str) {
        if !path.is_empty() {
            let _ = write!(
                self.body,
                "<path class=\"{class}\" d=\"{path}\" stroke-width=\"{}\"{extra}/>",
                n(width)
            );
        }
    }

    pub(super) fn fill(&mut self, class: &str, path: &str) {
        if !path.is_empty() {
            let _ = write!(self.body, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }

    pub(super) fn rect(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        (w, h): (f64, f64),
        extra: &str,
    ) {
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{extra}/>",
            n(x),
            n(y),
            n(w.max(0.0)),
            n(h.max(0.0))
        );
    }

    /// Small dots, at most one per pixel.
    pub(super) fn dots(&mut self, colour: &str, points: &[(f64, f64)]) {
        let mut taken = std::collections::BTreeSet::new();
        let mut path = String::new();
        for (x, y) in points {
            if taken.insert(((x * 0.7) as i64, (y * 0.7) as i64)) {
                path += &format!("M{} {}h0", n(*x), n(*y));
            }
        }
        self.path(&format!("s-{colour}"), &path, 3.0, " stroke-linecap=\"round\"");
    }

    /// All marks of one kind as a single path, so that thousands of marks need little space.
    pub(super) fn marks(
        &mut self,
        mark: Mark,
        colour: &str,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) {
        let mut path = String::new();
        for (x, y) in points {
            mark.draw(&mut path, x, y);
        }
        let (width, filled) = match mark {
            Mark::Cross => (2.0, false),
            Mark::Ring => (1.6, false),
            Mark::Dash | Mark::Broken(_) => (1.8, false),
            _ => (0.0, true),
        };
        if mark == Mark::Band {
            self.fill(&format!("b-{colour}"), &path);
        } else if filled {
            self.fill(&format!("f-{colour}"), &path);
        } else {
            self.path(&format!("s-{colour}"), &path, width, " stroke-linecap=\"round\"");
        }
    }
}

impl Mark {
    fn draw(self, path: &mut String, x: f64, y: f64) {
        let circle = |r: f64| {
            format!(
                "M{} {}a{r} {r} 0 1 0 {} 0a{r} {r} 0 1 0 {} 0",
                n(x - r),
                n(y),
                2.0 * r,
                -2.0 * r
            )
        };
        *path += &match self {
            Mark::Cross => {
                let (left, top) = (n(x - 3.5), n(y - 3.5));
                format!("M{left} {top}l7 7m-7 0l7 -7")
            }
            Mark::Triangle => format!("M{} {}l4.6 8h-9.2z", n(x), n(y - 5.0)),
            Mark::Diamond => format!("M{} {}l4.6 4.6l-4.6 4.6l-4.6 -4.6z", n(x), n(y - 4.6)),
            Mark::Square => format!("M{} {}h7v7h-7z", n(x - 3.5), n(y - 3.5)),
            Mark::Ring => circle(3.4),
            Mark::Dot => circle(3.2),
            Mark::Broken(0) => format!("M{} {}h4.5m3 0h4.5", n(x - 6.0), n(y)),
            Mark::Broken(1) => format!("M{} {}h2m3 0h2m3 0h2", n(x - 6.0), n(y)),
            Mark::Broken(_) => format!("M{} {}h6.5m3 0h2.5", n(x - 6.0), n(y)),
            Mark::Dash | Mark::Line { .. } => format!("M{} {}h12", n(x - 6.0), n(y)),
            Mark::Band => format!("M{} {}h12v10h-12z", n(x - 6.0), n(y - 5.0)),
        };
    }
}

/// Estimated width of a label. The reader's font is unknown, so letters count as narrow, common or wide.
pub(super) fn text_width(text: &str) -> f64 {
    let letter = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | ' ' | '.' | ',' | '(' | ')' | '-' | ':' => 4.6,
        'm' | 'w' | 'M' | 'W' | '+' | '%' => 11.0,
        c if c.is_ascii_uppercase() => 8.7,
        _ => 7.7,
    };
    text.chars().map(letter).sum()
}

/// Draws a legend of marks, colours and names, wrapped at full lines. Returns the coordinate of its last line.
pub(super) fn legend(
    canvas: &mut Canvas,
    at: (f64, f64),
    right: f64,
    entries: &[(Mark, &str, String)],
) -> f64 {
    let (mut x, mut y) = at;
    for (mark, colour, words) in entries {
        let sample = if matches!(mark, Mark::Line { .. }) { 32.0 } else { 17.0 };
        let width = sample + text_width(words) + 18.0;
        if x + width > right && x > at.0 {
            x = at.0;
            y += 17.0;
        }
        if let Mark::Line { dash, mark: on } = mark {
            let path = format!("M{} {}h26", n(x), n(y - 4.0));
            canvas.path(&format!("s-{colour}"), &path, 1.8, &dashes(*dash));
            on.iter().for_each(|on| canvas.marks(self::mark(*on), colour, [(x + 13.0, y - 4.0)]));
        } else {
            canvas.marks(*mark, colour, [(x + 6.0, y - 4.0)]);
        }
        canvas.text("l", x + sample, y, Anchor::Start, words);
        x += width;
    }
    y
}
