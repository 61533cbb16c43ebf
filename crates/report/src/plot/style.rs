//! Colours and fonts of the plots.
//!
//! The colours of series are those of Okabe and Ito, which people with any common colour blindness can distinguish,
//! adjusted for contrast on a dark background. Shape distinguishes series as well as colour does.

/// Light or dark, for pictures that cannot follow the reader's preference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Theme {
    /// Dark on light, for paper.
    #[default]
    Light,
    Dark,
}

/// Name, light, dark.
const COLOURS: [(&str, &str, &str); 13] = [
    ("paper", "#ffffff", "#14181d"),
    ("ink", "#1b2430", "#e7ebf0"),
    ("muted", "#5c6773", "#9ba6b2"),
    ("grid", "#e3e7ec", "#2a323b"),
    ("axis", "#9aa5b1", "#5b6672"),
    ("stall", "#f0ead6", "#2c2a20"),
    ("blue", "#0072b2", "#5ab4ea"),
    ("orange", "#bf7900", "#f0b23c"),
    ("green", "#00875f", "#2fc49a"),
    ("purple", "#b4558c", "#dd90bd"),
    ("sky", "#3a9bd6", "#8fd0f5"),
    ("red", "#cc3311", "#ff7458"),
    ("published", "#b8c0ca", "#4a545f"),
];

/// The colours of series in order of use.
const SERIES: [&str; 7] = ["blue", "orange", "green", "purple", "red", "sky", "ink"];

pub(super) fn series(i: usize) -> &'static str {
    SERIES[i % SERIES.len()]
}

/// Font family of PNGs: the embedded font.
#[cfg(feature = "png")]
pub(super) const PNG_FONT: &str = "DejaVu Sans";

/// Fonts of figures in documents: the first is the font of most papers' figures.
pub(super) const FIGURE_FONT: &str = "Helvetica,Arial,'DejaVu Sans',sans-serif";

const PAGE_FONT: &str =
    "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',sans-serif";

/// The background of a separate file.
pub(super) const BACKGROUND: &str = "<rect class=\"f-paper\" width=\"100%\" height=\"100%\"/>";

/// The rules of all classes of plots: text (`t`itle, `l`abel, tic`k`, `v`alue), strokes, fills and bands by colour.
/// `colour` maps a name to a CSS value; `scope` is put before each selector.
fn rules(scope: &str, colour: impl Fn(&str) -> String, font: &str) -> String {
    let (ink, muted) = (colour("ink"), colour("muted"));
    let mut css = String::new();
    for (class, size, colour) in [
        ("t", "15px;font-weight:600", &ink),
        ("l", "12.5px", &muted),
        ("k", "12px", &muted),
        ("v", "11.5px", &ink),
    ] {
        css += &format!("{scope}.{class}{{font-family:{font};font-size:{size};fill:{colour}}}");
    }
    for (name, _, _) in COLOURS {
        let c = colour(name);
        css += &format!(
            "{scope}.s-{name}{{stroke:{c};fill:none}}{scope}.f-{name}{{fill:{c}}}\
             {scope}.b-{name}{{fill:{c};fill-opacity:.18}}"
        );
    }
    css
}

fn pick(theme: Theme, name: &str) -> &'static str {
    let colour = COLOURS.iter().find(|(n, _, _)| *n == name);
    colour.map_or("#808080", |(_, light, dark)| if theme == Theme::Light { light } else { dark })
}

/// Definitions of the colour variables.
pub(crate) fn variables(theme: Theme) -> String {
    COLOURS.iter().map(|(name, _, _)| format!("--lh-{name}:{};", pick(theme, name))).collect()
}

/// The rules for a page with inline plots; they apply within plots only.
pub(crate) fn page_css() -> String {
    rules(".lh ", |name| format!("var(--lh-{name})"), PAGE_FONT)
}

/// The style of a file that follows the reader's preference.
pub(super) fn standalone_css() -> String {
    format!(
        "svg{{{}}}@media (prefers-color-scheme:dark){{svg{{{}}}}}{}",
        variables(Theme::Light),
        variables(Theme::Dark),
        rules("", |name| format!("var(--lh-{name})"), PAGE_FONT)
    )
}

/// The style with literal colours, for one theme and for renderers without variables; `font` is a CSS value.
pub(super) fn fixed_css(theme: Theme, font: &str) -> String {
    rules("", |name| pick(theme, name).to_owned(), font)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance (WCAG 2.2).
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { libm::pow((value + 0.055) / 1.055, 2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    #[test]
    fn lines_and_text_have_enough_contrast_with_the_paper() {
        for theme in [Theme::Light, Theme::Dark] {
            let contrast = |name: &str| {
                let (a, b) = (luminance(pick(theme, name)), luminance(pick(theme, "paper")));
                (a.max(b) + 0.05) / (a.min(b) + 0.05)
            };
            for name in SERIES {
                assert!(contrast(name) >= 3.0, "{name} in {theme:?}: {}", contrast(name));
            }
            for name in ["ink", "muted"] {
                assert!(contrast(name) >= 4.5, "{name} in {theme:?}: {}", contrast(name));
            }
        }
    }
}
