//! The keys of hosts.

use std::net::IpAddr;

use lasthop_proto::describe::{Form, Keys, Need, Value};
use lasthop_proto::energy::Hardware;
use lasthop_proto::link::LineConfig;
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::wire::Addr;

use super::link;
use crate::model::{HostSide, Stack};

/// Values of the keys of a host's table.
#[derive(Debug)]
pub(crate) struct HostValues {
    pub side: Option<HostSide>,
    pub addr: Option<Addr>,
    pub stack: Stack,
    pub tcp: TcpConfig,
    pub access: Option<LineConfig>,
    pub battery: Option<Hardware>,
}

/// Visits the keys of a host.
pub(crate) fn keys(k: &mut Keys<'_>) -> HostValues {
    let sides = [("left", HostSide::Left), ("right", HostSide::Right)];
    let side = k.maybe_word("side", &sides, "its end of the path: wired or wireless");
    let need = Need::Else("one is chosen");
    let addr = match k.value("addr", Form::Text("\"10.0.0.1\""), need, Value::Absent, "its address")
    {
        Value::Text(text) => match text.parse::<IpAddr>() {
            Ok(ip) => Some(Addr::from(ip)),
            Err(_) => {
                let message = format!("`{}`: `{text}` is no IP address", k.path("addr"));
                let help = "for example `addr = \"10.0.0.1\"` or `addr = \"fd00::1\"`; without it one is chosen";
                k.refuse("addr", message, "expected an address", help);
                None
            }
        },
        _ => None,
    };
    let tcp = TcpConfig::keys(k);
    let kernels = KERNELS.map(|(word, _)| (word, word));
    let description =
        "the setup of its kernel in the testbed; by default the one nearest to the preset";
    let kernel = k.maybe_word("kernel", &kernels, description);
    // The caller finds the kernel closest to the preset, since it has the keys of the file.
    let kernel = Stack::Kernel { preset: kernel.unwrap_or(""), settings: Vec::new() };
    let mut stack = kernel.clone();
    let stacks = [("kernel", kernel), ("lasthop", Stack::Lasthop)];
    k.word("stack", &mut stack, &stacks, "its TCP in the testbed: the kernel's, or lasthop's");
    let description =
        "its own link to the path, in both directions: other hosts have other round trips";
    let mut access = None;
    k.table("access", description, |k| access = Some(link::access(k)));
    let access = access.filter(|_| k.has("access"));
    HostValues { side, addr, stack, tcp, access, battery: Hardware::keys(k) }
}

/// The values of `kernel`: presets of a host's kernel in the testbed.
pub const KERNELS: [(&str, &str); 4] = [
    (
        "linux-1997",
        "the kernel's Reno without SACK, timestamps, scaling or probes, 1 s minimum RTO",
    ),
    ("linux-reno", "today's kernel with Reno"),
    ("linux-cubic", "today's kernel with CUBIC, its default"),
    ("linux-bbr", "today's kernel with BBR"),
];
