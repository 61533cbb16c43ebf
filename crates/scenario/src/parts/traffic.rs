//! The keys of the application of a transfer.

use lasthop_proto::describe::Keys;
use lasthop_proto::tcp::traffic::{OnOff, Periods, Sizes, Web};
use lasthop_proto::udp::{self, Arrivals, Codec, Udp, Voice};
use lasthop_proto::units::{Bytes, Rate, Span};

use super::{exchange, fetching};
use crate::model::Traffic;

const DAY: Span = Span::secs(86_400);

/// Values of the keys of a transfer's application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Application {
    pub on_off: OnOff,
    pub web: Option<Web>,
    pub udp: Option<Udp>,
    pub fetching: Option<(&'static str, Traffic)>,
    pub exchange: exchange::ExchangeValues,
}

/// Visits the keys of an application.
pub(crate) fn keys(k: &mut Keys<'_>) -> Application {
    let periods = |mean| Periods { mean, shape: None };
    let mut on_off = OnOff { on: periods(Span::millis(500)), off: periods(Span::millis(500)) };
    k.table("on-off", "it sends for a while, then nothing for a while, on one connection", |k| {
        let times = Span::millis(1)..=DAY;
        k.within("on", &mut on_off.on.mean, times.clone(), "the mean time in which it sends");
        k.within("off", &mut on_off.off.mean, times, "the mean time in which it does not");
        let shape = shape(k);
        (on_off.on.shape, on_off.off.shape) = (shape, shape);
    });
    let (mut sessions, mut think) = (1, Span::secs(1));
    let (mut mean, mut most, mut tail) = (Bytes(10_000), None, 1.2);
    let mut web = None;
    k.table("web", "users who fetch something, think, and fetch again, on new connections", |k| {
        k.count("sessions", &mut sessions, 1..=10_000, "how many users");
        let description = "the mean time from the end of a fetch to the beginning of the next";
        k.within("think", &mut think, Span::millis(1)..=DAY, description);
        k.table("size", "the sizes, a Pareto distribution", |k| {
            let sizes = Bytes(1)..=Bytes(1 << 40);
            k.within("mean", &mut mean, sizes, "the mean size");
            k.maybe("max", &mut most, Bytes(0)..=Bytes(u64::MAX), "the largest size; 100 times `mean` by default");
            tail = shape(k).unwrap_or(tail);
        });
        let most = most.unwrap_or(Bytes(mean.0.saturating_mul(100)));
        web = Sizes::new(mean, most, tail).map(|size| Web { sessions, think, size });
        if web.is_none() {
            let help = format!(
                "the largest size, {} bytes, is not above the mean of {}; for example `size = {{ mean = \"10kB\", \
                 max = \"1MB\", shape = 1.2 }}`",
                most.0, mean.0
            );
            k.out_of_range("size", help);
        }
    });
    let mut udp = None;
    k.table("udp", "datagrams at a rate that does not depend on losses", |k| {
        udp = Some(datagrams(k));
    });
    let udp = udp.filter(|_| k.has("udp"));
    let (mut page, mut video) = (None, None);
    k.table("page", "clients that load pages: a first object, then others in parallel", |k| {
        page = Some(("page", Traffic::Page(fetching::page(k))));
    });
    k.table("video", "clients that play a video by segments, and choose their rates", |k| {
        video = Some(("video", Traffic::Video(fetching::video(k))));
    });
    let fetching = page.into_iter().chain(video).find(|(key, _)| k.has(key));
    Application { on_off, web, udp, fetching, exchange: exchange::keys(k) }
}

/// Bytes of a probe.
const PROBE: u64 = 64;

fn datagrams(k: &mut Keys<'_>) -> Udp {
    let description = "a voice call, instead of a rate and a size; its quality is estimated";
    let codec = k.maybe_word("voice", &Codec::WORDS, description);
    let (usual, mut given) = (Rate::from_bps(1_000_000), codec.and_then(Codec::rate));
    let mut usual_size = codec.map_or(1000, Codec::size);
    let mut buffer = Span::millis(60);
    let description =
        "with `voice`: the playout buffer, the maximum delay of packets above the shortest one";
    k.within("buffer", &mut buffer, Span::ZERO..=Span::secs(10), description);
    let mut probe = None;
    let description = "the interval of small packets that the receiver returns, instead of a rate and a size; they measure round trips";
    k.maybe("probe", &mut probe, Span::millis(1)..=Span::secs(60), description);
    if let Some(every) = probe {
        (given, usual_size) =
            (Rate::from_bps((PROBE * 8_000_000_000 / every.0).max(1)), PROBE as u32);
    }
    let voice = codec.map(|codec| Voice { codec, buffer });
    k.maybe_rate("rate", &mut given, "the mean rate, IP headers included");
    let listed = usual.unwrap_or_else(|| unreachable!("a rate"));
    let rate = k.demand("rate", given, listed);
    let (mut size, mut arrivals, mut sizes) =
        (usual_size, Arrivals::Constant, udp::Sizes::Constant);
    k.bytes("size", &mut size, 60..=65_535, "the mean size of an IP packet, headers included");
    let words = [("constant", Arrivals::Constant), ("poisson", Arrivals::Poisson)];
    k.word("arrivals", &mut arrivals, &words, "whether intervals are equal, or exponential");
    let words = [("constant", udp::Sizes::Constant), ("exponential", udp::Sizes::Exponential)];
    k.word("sizes", &mut sizes, &words, "whether sizes are equal, or exponential");
    let mut l4s = false;
    let description =
        "packets and returned probes have ECT(1), which selects the low-latency queue";
    k.flag("l4s", &mut l4s, description);
    let own = ["rate", "size", "arrivals", "sizes", "voice"];
    let of_voice = codec.and(k.first(&own[..4])).map(|key| (key, "voice"));
    let of_probe = probe.and(k.first(&own)).map(|key| (key, "probe"));
    if let Some((key, other)) = of_probe.or(of_voice) {
        let message = format!("`{}` and `{other}` exclude each other", k.path(key));
        k.refuse(key, message, "not together", "leave one of them out");
    }
    if codec.is_none() && k.has("buffer") {
        let message = format!("`{}` without `voice`", k.path("buffer"));
        k.refuse("buffer", message, "nothing uses it", "write `voice = \"g711\"`, or leave it out");
    }
    Udp { rate, size, arrivals, sizes, voice, probe, l4s }
}

fn shape(k: &mut Keys<'_>) -> Option<f64> {
    let mut shape = None;
    let description =
        "the shape of a Pareto distribution, from 1.05 (heavy tail) to 10 (hardly any)";
    k.maybe("shape", &mut shape, 1.05..=10.0, description);
    shape
}
