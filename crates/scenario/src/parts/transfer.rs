//! The keys of transfers.

use lasthop_proto::describe::{Form, Keys, Need, Value as Given};
use lasthop_proto::units::{Bytes, Span};

use super::exchange::MAX_CONNECTIONS;
use super::traffic::{self, Application};
use crate::model::Quic;
use crate::quic;

/// Values of the keys of a transfer's table.
#[derive(Debug)]
pub(crate) struct TransferValues {
    pub from: String,
    pub to: String,
    /// Size; `None` is endless, or limited by the application.
    pub bytes: Option<Bytes>,
    pub start: Span,
    pub stop: Option<Span>,
    pub every: Option<Span>,
    pub count: u32,
    pub application: Application,
    pub cross: bool,
    pub quic: Option<Quic>,
}

/// Visits the keys of a transfer.
pub(crate) fn keys(k: &mut Keys<'_>) -> TransferValues {
    let mut host = |key, example, description| match k.value(
        key,
        Form::Text(example),
        Need::Required(example),
        Given::Absent,
        description,
    ) {
        Given::Text(name) => name,
        _ => String::new(),
    };
    let from = host("from", "\"fixed\"", "the host that sends");
    let to = host("to", "\"mobile\"", "the host that receives, at the other end of the path");
    let form = Form::or(vec!["unlimited"], Bytes(1)..=Bytes(1 << 50));
    let description = "how much is sent; \"unlimited\" needs a `horizon` or a `stop`";
    let bytes = match k.value("bytes", form, Need::Else(""), Given::Absent, description) {
        Given::Size(bytes) => Some(bytes),
        _ => None,
    };
    let month = Span::secs(30 * 86_400);
    let (mut start, mut stop, mut every) = (Span::ZERO, None, None);
    k.within("start", &mut start, Span::ZERO..=month, "when it begins");
    let description = "when it ends: nothing new is sent from then on, and the connection closes";
    k.maybe("stop", &mut stop, Span::ZERO..=month, description);
    if stop.is_some_and(|stop| stop <= start) {
        k.out_of_range("stop", format!("it must be later than `start`, which is {start}"));
    }
    let description =
        "the time after which the transfer or request is repeated, until `stop` or the `horizon`";
    k.maybe("every", &mut every, Span::millis(1)..=month, description);
    let mut count = 1;
    k.count("count", &mut count, 1..=MAX_CONNECTIONS, "the number of parallel connections");
    let application = traffic::keys(k);
    let mut cross = false;
    k.flag("cross", &mut cross, "whether it is cross traffic, which is measured separately");
    let quic = quic::keys(k);
    TransferValues { from, to, bytes, start, stop, every, count, application, cross, quic }
}
