//! Plots as SVG, in three forms. Inside a page, colours come from the page's variables. A separate file is light or
//! dark by the reader's preference, or in one theme. PNG and PDF have one theme.

mod axis;
mod bars;
mod canvas;
mod crosses;
mod curves;
mod heat;
mod messages;
mod panels;
mod ranks;
mod sequence;
mod style;
mod trace;

#[cfg(feature = "png")]
use std::sync::{Arc, OnceLock};

#[cfg(feature = "png")]
use resvg::{tiny_skia, usvg};

use self::canvas::Canvas;
use crate::data::Data;
use crate::model::Table;

pub use bars::{Bar, BarChart, BarGroup, BarSeries};
pub(crate) use canvas::escape;
pub use crosses::{Cross, Crosses};
pub use curves::{Curve, Curves, Pen};
pub use heat::{HeatMap, HeatMaps};
pub use messages::{Message, Messages};
pub use panels::{Panel, Panels};
pub use ranks::{RankValue, Ranks};
pub use sequence::TimeSequence;
pub use style::Theme;
pub(crate) use style::{page_css, variables};
pub use trace::PacketTrace;

#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    width: f64,
    height: f64,
    title: String,
    body: String,
    data: Data,
}

/// Why rendering to PNG or PDF failed.
#[cfg(feature = "png")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawError(String);

#[cfg(feature = "png")]
impl std::fmt::Display for DrawError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the plot could not be drawn: {}", self.0)
    }
}

#[cfg(feature = "png")]
impl std::error::Error for DrawError {}

impl Plot {
    /// A plot whose numbers are a table.
    fn of_table((width, height): (f64, f64), title: &str, canvas: Canvas, table: Table) -> Plot {
        let data = Data::Table(table.titled(title));
        Plot { width, height, title: title.to_owned(), body: canvas.body, data }
    }

    fn wrap(&self, style: &str, extra: &str) -> String {
        let Plot { width, height, .. } = self;
        let title = escape(&self.title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lh\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" aria-label=\"{title}\"{extra}>{style}{}</svg>",
            self.body
        )
    }

    /// The numbers behind the plot.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// SVG for a page of [`crate::html`], which defines the colours.
    pub fn inline(&self) -> String {
        // As wide as the page; scrolled on a phone before it becomes illegible.
        let least = (self.width * 0.68).round();
        // Limits the magnification of small plots.
        let most = (self.width * 1.25).round();
        self.wrap("", &format!(" style=\"width:100%;min-width:{least}px;max-width:{most}px\""))
    }

    /// A separate file that follows the reader's preference for light or dark.
    pub fn svg(&self) -> String {
        let size = format!(" width=\"{}\" height=\"{}\"", self.width, self.height);
        let style = format!("<style>{}</style>{}", style::standalone_css(), style::BACKGROUND);
        self.wrap(&style, &size)
    }

    /// A separate file in one theme, for documents that show no other: papers, slides.
    pub fn figure(&self, theme: Theme) -> String {
        let size = format!(" width=\"{}\" height=\"{}\"", self.width, self.height);
        let css = style::fixed_css(theme, style::FIGURE_FONT);
        self.wrap(&format!("<style>{css}</style>{}", style::BACKGROUND), &size)
    }

    /// The plot as a renderer reads it, with the embedded font.
    #[cfg(feature = "png")]
    fn tree(&self, theme: Theme) -> Result<usvg::Tree, DrawError> {
        let options = usvg::Options {
            fontdb: fonts(),
            font_family: style::PNG_FONT.to_owned(),
            ..usvg::Options::default()
        };
        let css = style::fixed_css(theme, &format!("'{}'", style::PNG_FONT));
        let style = format!("<style>{css}</style>{}", style::BACKGROUND);
        let size = format!(" width=\"{}\" height=\"{}\"", self.width, self.height);
        usvg::Tree::from_str(&self.wrap(&style, &size), &options)
            .map_err(|e| DrawError(e.to_string()))
    }

    /// A PNG; `scale` 1 has the size of the SVG, 2 twice the resolution. It needs no font on the machine.
    ///
    /// # Errors
    ///
    /// `scale` is too small or too large for an image.
    #[cfg(feature = "png")]
    pub fn png(&self, theme: Theme, scale: f32) -> Result<Vec<u8>, DrawError> {
        let error = |e: &dyn std::fmt::Display| DrawError(e.to_string());
        let tree = self.tree(theme)?;
        let size = tree
            .size()
            .to_int_size()
            .scale_by(scale)
            .ok_or_else(|| error(&format_args!("scale {scale} leaves no picture")))?;
        let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height())
            .ok_or_else(|| error(&"too large"))?;
        let transform = tiny_skia::Transform::from_scale(scale, scale);
        resvg::render(&tree, transform, &mut pixels.as_mut());
        encoded(pixels).map_err(|e| error(&e))
    }
}

/// The pixels as a PNG without filters: large areas of one colour compress better so, in a third of the time.
#[cfg(feature = "png")]
fn encoded(pixels: tiny_skia::Pixmap) -> Result<Vec<u8>, png::EncodingError> {
    let mut data = Vec::new();
    let mut encoder = png::Encoder::new(&mut data, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_filter(png::Filter::NoFilter);
    encoder.write_header()?.write_image_data(&pixels.take_demultiplied())?;
    Ok(data)
}

/// The embedded font of PNGs, so that they look the same on every machine.
#[cfg(feature = "png")]
fn fonts() -> Arc<usvg::fontdb::Database> {
    static FONTS: OnceLock<Arc<usvg::fontdb::Database>> = OnceLock::new();
    let load = || {
        let mut fonts = usvg::fontdb::Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        Arc::new(fonts)
    };
    FONTS.get_or_init(load).clone()
}
