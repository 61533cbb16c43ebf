//! PDF of a plot: the paths of its SVG tree, text as outlines.
//!
//! Plots have filled and stroked paths in plain colours, and text. Clips, masks, filters, gradients and images do not
//! occur in them.

use std::collections::BTreeMap;

use pdf_writer::types::{LineCapStyle, LineJoinStyle};
use pdf_writer::{Content, Filter, Finish as _, Name, Pdf, Rect, Ref};
use resvg::tiny_skia::PathSegment;
use resvg::usvg::{
    Fill, FillRule, Group, LineCap, LineJoin, Node, Paint, Path, Stroke, Transform, Tree,
};

const CATALOG: Ref = Ref::new(1);
const PAGES: Ref = Ref::new(2);
const PAGE: Ref = Ref::new(3);
const CONTENT: Ref = Ref::new(4);
/// Opacity states follow, one object each.
const FIRST_STATE: i32 = 5;

/// A page being drawn, and the opacities it uses, in 1/1000, each with the number of its state.
struct Drawing {
    content: Content,
    opacities: BTreeMap<u16, i32>,
}

/// A document of one page with the size of `tree`, one point for each pixel.
pub fn document(tree: &Tree) -> Vec<u8> {
    let (width, height) = (tree.size().width(), tree.size().height());
    let mut drawing = Drawing { content: Content::new(), opacities: BTreeMap::new() };
    // SVG counts from the top, PDF from the bottom.
    drawing.content.transform([1.0, 0.0, 0.0, -1.0, 0.0, height]);
    drawing.group(tree.root());

    let mut pdf = Pdf::new();
    pdf.catalog(CATALOG).pages(PAGES);
    pdf.pages(PAGES).kids([PAGE]).count(1);
    let mut page = pdf.page(PAGE);
    page.media_box(Rect::new(0.0, 0.0, width, height)).parent(PAGES).contents(CONTENT);
    let mut resources = page.resources();
    let mut states = resources.ext_g_states();
    for state in drawing.opacities.values() {
        states.pair(Name(state_name(*state).as_bytes()), Ref::new(FIRST_STATE + state));
    }
    states.finish();
    resources.finish();
    page.finish();
    for (opacity, state) in &drawing.opacities {
        let value = f32::from(*opacity) / 1000.0;
        pdf.ext_graphics(Ref::new(FIRST_STATE + state))
            .non_stroking_alpha(value)
            .stroking_alpha(value);
    }
    let bytes = deflated(&drawing.content.finish());
    pdf.stream(CONTENT, &bytes).filter(Filter::FlateDecode);
    pdf.finish()
}

fn state_name(state: i32) -> String {
    format!("O{state}")
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

impl Drawing {
    fn group(&mut self, group: &Group) {
        let Transform { sx, ky, kx, sy, tx, ty } = group.transform();
        self.content.save_state();
        self.content.transform([sx, ky, kx, sy, tx, ty]);
        for node in group.children() {
            match node {
                Node::Group(inner) => self.group(inner),
                Node::Path(path) => self.path(path),
                Node::Text(text) => self.group(text.flattened()),
                Node::Image(_) => {}
            }
        }
        self.content.restore_state();
    }

    fn path(&mut self, path: &Path) {
        if !path.is_visible() {
            return;
        }
        if let Some(fill) = path.fill() {
            self.fill(path, fill);
        }
        if let Some(stroke) = path.stroke() {
            self.stroke(path, stroke);
        }
    }

    fn fill(&mut self, path: &Path, fill: &Fill) {
        let Some([r, g, b]) = colour(fill.paint()) else { return };
        self.opacity(fill.opacity().get());
        self.content.set_fill_rgb(r, g, b);
        self.outline(path);
        match fill.rule() {
            FillRule::NonZero => self.content.fill_nonzero(),
            FillRule::EvenOdd => self.content.fill_even_odd(),
        };
    }

    fn stroke(&mut self, path: &Path, stroke: &Stroke) {
        let Some([r, g, b]) = colour(stroke.paint()) else { return };
        self.opacity(stroke.opacity().get());
        self.content.set_stroke_rgb(r, g, b);
        self.content.set_line_width(stroke.width().get());
        self.content.set_line_cap(match stroke.linecap() {
            LineCap::Butt => LineCapStyle::ButtCap,
            LineCap::Round => LineCapStyle::RoundCap,
            LineCap::Square => LineCapStyle::ProjectingSquareCap,
        });
        self.content.set_line_join(match stroke.linejoin() {
            LineJoin::Miter | LineJoin::MiterClip => LineJoinStyle::MiterJoin,
            LineJoin::Round => LineJoinStyle::RoundJoin,
            LineJoin::Bevel => LineJoinStyle::BevelJoin,
        });
        self.content.set_miter_limit(stroke.miterlimit().get());
        let dashes = stroke.dasharray().unwrap_or_default();
        self.content.set_dash_pattern(dashes.iter().copied(), stroke.dashoffset());
        self.outline(path);
        self.content.stroke();
    }

    fn opacity(&mut self, opacity: f32) {
        let key = (1000.0 * opacity).round() as u16;
        let next = self.opacities.len() as i32;
        let state = *self.opacities.entry(key).or_insert(next);
        self.content.set_parameters(Name(state_name(state).as_bytes()));
    }

    fn outline(&mut self, path: &Path) {
        let mut at = (0.0, 0.0);
        for segment in path.data().segments() {
            match segment {
                PathSegment::MoveTo(p) => {
                    self.content.move_to(p.x, p.y);
                    at = (p.x, p.y);
                }
                PathSegment::LineTo(p) => {
                    self.content.line_to(p.x, p.y);
                    at = (p.x, p.y);
                }
                PathSegment::QuadTo(c, p) => {
                    // PDF has cubic curves only: each control point lies two thirds of the way to that of the quadratic one.
                    let towards = |from: f32, to: f32| from + (to - from) * 2.0 / 3.0;
                    let (x1, y1) = (towards(at.0, c.x), towards(at.1, c.y));
                    let (x2, y2) = (towards(p.x, c.x), towards(p.y, c.y));
                    self.content.cubic_to(x1, y1, x2, y2, p.x, p.y);
                    at = (p.x, p.y);
                }
                PathSegment::CubicTo(a, b, p) => {
                    self.content.cubic_to(a.x, a.y, b.x, b.y, p.x, p.y);
                    at = (p.x, p.y);
                }
                PathSegment::Close => {
                    self.content.close_path();
                }
            }
        }
    }
}

/// Red, green and blue, each from 0 to 1.
fn colour(paint: &Paint) -> Option<[f32; 3]> {
    let Paint::Color(colour) = paint else { return None };
    Some([colour.red, colour.green, colour.blue].map(|part| f32::from(part) / 255.0))
}
