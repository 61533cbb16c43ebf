//! Transfers of clients that load pages or play a video.

use lasthop_proto::describe::{Form, Keys, Need, Value};
use lasthop_proto::tcp::page::{Content, Page};
use lasthop_proto::tcp::video::{Abr, Ladder, Video};
use lasthop_proto::units::{Bytes, Rate, Span};

/// The least size of a request, and the largest.
const REQUESTS: core::ops::RangeInclusive<Bytes> = Bytes(8)..=Bytes(1 << 16);
/// The largest page and the largest segment.
const MOST: u64 = 1 << 30;
const HOUR: Span = Span::secs(3600);

/// Visits the keys of pages.
pub(crate) fn page(k: &mut Keys<'_>) -> Page {
    let (mut first, mut objects, mut size) = (Bytes(30_000), 20, Bytes(15_000));
    let sizes = Bytes(1)..=Bytes(1 << 30);
    k.within("first", &mut first, sizes.clone(), "the size of the first object");
    let description =
        "the number of other objects of a page, requested after the first has arrived";
    k.count("objects", &mut objects, 0..=1000, description);
    k.within("size", &mut size, sizes, "the size of each of the others");
    let mut content = Content::Same { first, objects, size };
    let words = [("same", content), ("ngmn", Content::Ngmn)];
    let description = "`same`, or drawn for each page by the model of NGMN (2008)";
    k.word("sizes", &mut content, &words, description);
    if content == Content::Ngmn {
        alone(k, &["first", "objects", "size"], "sizes = \"ngmn\"", "drawn by the model");
    } else if first.0.saturating_add(size.0.saturating_mul(objects.into())) > MOST {
        k.out_of_range("size", format!("a page has at most {MOST} bytes"));
    }
    let mut request = Bytes(400);
    k.within("request", &mut request, REQUESTS, "the size of a request");
    let (mut multiplexed, mut connections) = (false, 6);
    let description = "one connection, on which all objects after the first are requested at once";
    k.flag("multiplexed", &mut multiplexed, description);
    let description = "the maximum number of connections of a client; they stay open";
    k.count("connections", &mut connections, 1..=256, description);
    if multiplexed {
        alone(k, &["connections"], "multiplexed = true", "uses one connection");
        connections = 1;
    }
    let mut think = if content == Content::Ngmn { Span::secs(30) } else { Span::ZERO };
    let description = "the mean of the exponential time from a page to the next";
    k.within("think", &mut think, Span::ZERO..=HOUR * 24, description);
    let mut pages = None;
    let description = "pages that a client loads; by default until `stop` or the `horizon`";
    k.maybe_count("pages", &mut pages, 1..=100_000, description);
    Page { content, request, connections, multiplexed, think, pages }
}

/// Visits the keys of a video.
pub(crate) fn video(k: &mut Keys<'_>) -> Video {
    let (mut segment, mut length) = (Span::secs(4), Span::secs(60));
    let description = "the playing time of a segment";
    k.within("segment", &mut segment, Span::millis(100)..=Span::secs(60), description);
    k.within("length", &mut length, Span::millis(100)..=HOUR * 24, "the playing time of the video");
    let ladder = ladder(k);
    let mut buffer = Span::secs(30);
    let description = "the largest playout buffer; a client requests only segments that fit";
    k.within("buffer", &mut buffer, segment..=HOUR * 24, description);
    let (mut startup, mut resume) = (segment, segment);
    let description = "the buffered time at which playback starts; one segment by default";
    k.within("startup", &mut startup, Span(1)..=buffer, description);
    let description =
        "the buffered time at which playback resumes after a stall; one segment by default";
    k.within("resume", &mut resume, Span(1)..=buffer, description);
    let abr = abr(k, buffer);
    let mut request = Bytes(400);
    k.within("request", &mut request, REQUESTS, "the size of a request");
    let segments = u32::try_from(length.0.div_ceil(segment.0)).unwrap_or(u32::MAX);
    let video = Video { segment, segments, ladder, abr, buffer, startup, resume, request };
    let top = ladder.rates().last();
    if top.is_some_and(|top| video.size(*top).0 > MOST) {
        k.out_of_range("segment", format!("a segment has at most {MOST} bytes"));
    }
    video
}

/// Rate adaptation. The default thresholds of BBA-0 are the paper's 90 s and 126 s for a buffer of 240 s,
/// scaled to the given buffer.
fn abr(k: &mut Keys<'_>, buffer: Span) -> Abr {
    let (mut reservoir, mut cushion) = (buffer * 3 / 8, buffer * 21 / 40);
    let (mut window, mut safety) = (5, 0.85);
    let description = "whether rates follow the buffer or the measured rate";
    let by_rate = k.maybe_word("abr", &[("buffer", false), ("rate", true)], description);
    let description =
        "with `buffer`: the lowest rate below this buffered time; 3/8 of the buffer by default";
    k.within("reservoir", &mut reservoir, Span::ZERO..=buffer, description);
    let description = "with `buffer`: the highest rate at this time above `reservoir`; 21/40 of the buffer by default";
    k.within("cushion", &mut cushion, Span(1)..=buffer, description);
    k.count("window", &mut window, 1..=1000, "with `rate`: how many segments are averaged");
    let description = "with `rate`: the share of the average that is used";
    k.within("safety", &mut safety, 0.01..=2.0, description);
    if by_rate == Some(true) {
        alone(k, &["reservoir", "cushion"], "abr = \"rate\"", "nothing uses it");
        return Abr::Rate { window, safety };
    }
    alone(k, &["window", "safety"], "abr = \"buffer\"", "nothing uses it");
    if reservoir + cushion > buffer {
        let key = if k.has("cushion") { "cushion" } else { "reservoir" };
        k.out_of_range(
            key,
            format!("`reservoir` and `cushion` must fit into `buffer`, which is {buffer}"),
        );
    }
    Abr::Buffer { reservoir, cushion }
}

/// The rates of a video; the default is Netflix's fixed ladder as published in December 2015 ("Per-Title
/// Encode Optimization").
fn ladder(k: &mut Keys<'_>) -> Ladder {
    const USUAL: [u64; 10] = [235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800];
    let usual: Vec<Rate> = USUAL.iter().filter_map(|k| Rate::from_bps(k * 1000)).collect();
    let usual = Ladder::new(&usual).unwrap_or_else(|| unreachable!("rates that rise"));
    let form = Form::Texts("[\"1mbit\", \"3mbit\"]");
    let description = "the available rates; by default from 235 kbit/s to 5.8 Mbit/s";
    let Value::Texts(given) = k.value("ladder", form, Need::Else(""), Value::Absent, description)
    else {
        return usual;
    };
    let rates: Option<Vec<Rate>> = given.iter().map(|text| text.parse().ok()).collect();
    rates.and_then(|rates| Ladder::new(&rates)).unwrap_or_else(|| {
        let most = Ladder::MOST;
        let help = format!("write 1 to {most} ascending rates, for example [\"1mbit\", \"3mbit\"]");
        let message = format!("`{}` is not a list of ascending rates", k.path("ladder"));
        k.refuse("ladder", message, "expected rates", help);
        usual
    })
}

/// Rejects `keys`, which exclude the setting `other`.
fn alone(k: &mut Keys<'_>, keys: &[&str], other: &str, why: &str) {
    if let Some(key) = k.first(keys) {
        let message = format!("`{}` and `{other}` exclude each other", k.path(key));
        k.refuse(key, message, why, "leave one of them out");
    }
}
