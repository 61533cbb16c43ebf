//! Presets of the kernel's TCP of a host.
//!
//! These are settings of Linux. The presets of lasthop's own TCP (`lasthop_proto::tcp::config::PRESETS`) are
//! a separate list with other names.
//!
//! No setting turns a current kernel into the TCP of an old paper. Partial ACKs after RFC 6582 and limited
//! transmit (RFC 3042) are always on, the first RTO is 1 s, and the clock is fine. `linux-1997` disables all
//! features that can be disabled. Where a paper's collapse depends on the others, use lasthop's TCP at the
//! end point.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::Error;
use super::host::HostSpec;

/// A preset of the kernel's TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The closest to the TCPs of 1997 that Linux offers.
    #[serde(rename = "linux-1997")]
    Linux1997,
    /// Default Linux with Reno.
    LinuxReno,
    /// Default Linux.
    LinuxCubic,
    /// Linux with BBR.
    LinuxBbr,
}

/// Mechanism of a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Knob {
    /// A file below /proc/sys/net/ipv4, which also affects IPv6.
    Sysctl,
    /// A metric of the default routes.
    Route,
    /// The congestion control: a sysctl if the machine allows it to users, else a metric of the routes.
    CongestionControl,
}

/// One line of a preset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Setting {
    /// Its mechanism.
    pub knob: Knob,
    /// Name of the sysctl or of the metric.
    pub key: &'static str,
    /// Its value, in the form in which the kernel returns it.
    pub value: &'static str,
    /// Whether the host may lack the setting.
    pub optional: bool,
    /// Reason for this value.
    pub why: &'static str,
}

/// A setting as found on a host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Found {
    /// The requested setting.
    pub setting: Setting,
    /// The found value; `None` if the kernel lacks the setting.
    pub value: Option<String>,
}

impl Found {
    /// Whether the found value is the requested one.
    pub fn holds(&self) -> bool {
        match &self.value {
            Some(value) => value == self.setting.value,
            None => self.setting.optional,
        }
    }
}

const fn sysctl(key: &'static str, value: &'static str, why: &'static str) -> Setting {
    Setting { knob: Knob::Sysctl, key, value, optional: false, why }
}

/// The number of timeouts of a SYN that do not double the next one. Kernels before Linux 6.5 lack it and double each.
const fn linear_syn_timeouts(value: &'static str, why: &'static str) -> Setting {
    Setting { optional: true, ..sysctl("tcp_syn_linear_timeouts", value, why) }
}

const fn route(key: &'static str, value: &'static str, why: &'static str) -> Setting {
    Setting { knob: Knob::Route, key, value, optional: false, why }
}

const fn congestion(value: &'static str, why: &'static str) -> Setting {
    let key = "tcp_congestion_control";
    Setting { knob: Knob::CongestionControl, key, value, optional: false, why }
}

/// Settings of all presets: they remove differences between runs and disturbances of a comparison.
const EVERY: &[Setting] = &[
    sysctl("tcp_no_metrics_save", "1", "a run must not begin with what an earlier one measured"),
    sysctl("tcp_mtu_probing", "0", "segments keep their size, so that losses stay comparable"),
    sysctl("tcp_fastopen", "0", "every connection begins with a handshake, as in the papers"),
];

const MODERN: &[Setting] = &[
    sysctl("tcp_sack", "1", "default"),
    sysctl("tcp_dsack", "1", "default"),
    sysctl("tcp_timestamps", "1", "default"),
    sysctl("tcp_window_scaling", "1", "default"),
    sysctl("tcp_recovery", "1", "default: RACK (RFC 8985)"),
    sysctl("tcp_early_retrans", "3", "default: tail loss probes"),
    sysctl("tcp_frto", "2", "default: unnecessary timeouts are detected (RFC 5682)"),
    sysctl("tcp_ecn", "2", "default: ECN only if the other side requests it"),
    sysctl("tcp_moderate_rcvbuf", "1", "default: the receive buffer grows with the path"),
    sysctl("tcp_rmem", "4096\t131072\t6291456", "default; the machine's own may differ"),
    sysctl("tcp_wmem", "4096\t16384\t4194304", "default; the machine's own may differ"),
    sysctl("tcp_slow_start_after_idle", "1", "default"),
    sysctl("tcp_max_reordering", "300", "default"),
    linear_syn_timeouts("4", "default: a lost SYN is repeated after 1, 2, 3, 4, 5, 7 s"),
    route("rto_min", "200", "default: 200 ms"),
];

const OF_1997: &[Setting] = &[
    congestion("reno", "the congestion control of the papers"),
    sysctl("tcp_sack", "0", "RFC 2018 was new; with it off, RACK is off as well"),
    sysctl("tcp_dsack", "0", "RFC 2883 is of 2000"),
    sysctl("tcp_timestamps", "0", "off in the papers' hosts: one round trip is timed at a time"),
    sysctl("tcp_window_scaling", "0", "windows were smaller than 64 KiB"),
    sysctl("tcp_recovery", "0", "RACK is of 2021"),
    sysctl("tcp_early_retrans", "0", "no tail loss probes (2013), no early retransmit (2010)"),
    sysctl("tcp_frto", "0", "F-RTO is of 2009: no timeout was judged spurious"),
    sysctl("tcp_ecn", "0", "ECN is of 2001"),
    sysctl("tcp_moderate_rcvbuf", "0", "buffers were fixed"),
    sysctl(
        "tcp_rmem",
        "4096\t131072\t131072",
        "what a window of 64 KiB needs, the kernel's own overhead included",
    ),
    sysctl(
        "tcp_wmem",
        "4096\t65536\t65536",
        "more than the other side's window: the kernel counts its own overhead here",
    ),
    sysctl("tcp_slow_start_after_idle", "1", "as BSD did"),
    sysctl("tcp_max_reordering", "3", "three duplicate ACKs are a loss, always"),
    linear_syn_timeouts("0", "a lost SYN is repeated after 1, 3, 7 s (RFC 6298)"),
    route("rto_min", "1000", "1 s: two of BSD's ticks of 500 ms"),
    route(
        "window",
        "16384",
        "the socket buffer of the hosts of west97 (4.0) as first window; \
         since Linux 6.5 it grows to 64 KiB all the same",
    ),
    route("initcwnd", "1", "slow start began with one segment (RFC 2001)"),
];

const RENO: &[Setting] = &[congestion("reno", "RFC 5681 growth, modern loss detection")];
const CUBIC: &[Setting] = &[congestion("cubic", "the kernel's own default (RFC 9438)")];
const BBR: &[Setting] = &[congestion("bbr", "does not take single losses for congestion")];

impl Preset {
    /// All presets.
    pub const ALL: [Preset; 4] =
        [Preset::Linux1997, Preset::LinuxReno, Preset::LinuxCubic, Preset::LinuxBbr];

    /// Its name, for example `linux-1997`.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Linux1997 => "linux-1997",
            Preset::LinuxReno => "linux-reno",
            Preset::LinuxCubic => "linux-cubic",
            Preset::LinuxBbr => "linux-bbr",
        }
    }

    /// A description in one line.
    pub fn description(self) -> &'static str {
        match self {
            Preset::Linux1997 => {
                "as near as Linux comes to 1997: Reno, RTO from 1 s, no SACK, timestamps, scaling or RACK"
            }
            Preset::LinuxReno => "Linux as it comes, with Reno instead of CUBIC",
            Preset::LinuxCubic => "Linux as it comes",
            Preset::LinuxBbr => "Linux as it comes, with BBR instead of CUBIC",
        }
    }

    /// The preset of this name.
    pub fn named(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// All its settings.
    pub fn settings(self) -> impl Iterator<Item = Setting> {
        let (own, shared): (_, &[Setting]) = match self {
            Preset::Linux1997 => (OF_1997, &[]),
            Preset::LinuxReno => (RENO, MODERN),
            Preset::LinuxCubic => (CUBIC, MODERN),
            Preset::LinuxBbr => (BBR, MODERN),
        };
        own.iter().chain(shared).chain(EVERY).copied()
    }

    /// Applies the settings that are sysctls, in the calling thread's namespace.
    pub(super) fn set_sysctls(self) -> Result<(), Error> {
        self.settings()
            .filter(|setting| setting.knob == Knob::Sysctl)
            .filter(|setting| !setting.optional || path(*setting).exists())
            .try_for_each(|setting| write_sysctl(&file(setting), setting.value))
    }
}

/// Sets the congestion control of the calling thread's namespace if a sysctl can, and returns the route
/// attributes for the other settings of this host.
pub(super) fn route_metrics(spec: &HostSpec) -> Result<String, Error> {
    route_words(spec, |path, value| std::fs::write(path, value))
}

/// The route attributes; `write` sets the sysctl of the congestion control.
fn route_words(
    spec: &HostSpec,
    write: impl Fn(&Path, &str) -> io::Result<()>,
) -> Result<String, Error> {
    let mut words: Vec<(&str, String)> = Vec::new();
    let mut congestion = spec.congestion.as_deref();
    for setting in spec.preset.into_iter().flat_map(Preset::settings) {
        match setting.knob {
            Knob::Route if spec.route.iter().any(|(key, _)| key == setting.key) => {}
            Knob::Route if setting.key == "rto_min" => {
                words.push((setting.key, format!("{}ms", setting.value)));
            }
            Knob::Route => words.push((setting.key, setting.value.to_owned())),
            Knob::CongestionControl => congestion = congestion.or(Some(setting.value)),
            Knob::Sysctl => {}
        }
    }
    words.extend(spec.route.iter().map(|(key, value)| (key.as_str(), value.clone())));
    if let Some(control) = congestion {
        let path = Path::new("/proc/sys/net/ipv4/tcp_congestion_control");
        match write(path, control) {
            Ok(()) => {}
            // Only the machine's root may select a default outside of tcp_allowed_congestion_control. A route
            // may select it in any namespace.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                words.insert(0, ("congctl", control.to_owned()));
            }
            Err(error) => return Err(refused(path, control, &error)),
        }
    }
    let words: Vec<String> = words.iter().map(|(key, value)| format!("{key} {value}")).collect();
    Ok(words.join(" "))
}

fn file(setting: Setting) -> String {
    format!("ipv4/{}", setting.key)
}

pub(super) fn path(setting: Setting) -> PathBuf {
    Path::new("/proc/sys/net").join(file(setting))
}

/// Writes a setting below /proc/sys/net, in the calling thread's namespace.
pub(crate) fn write_sysctl(key: &str, value: &str) -> Result<(), Error> {
    let path = Path::new("/proc/sys/net").join(key);
    std::fs::write(&path, value).map_err(|error| refused(&path, value, &error))
}

/// The error for a setting below /proc/sys, with its remedy.
pub(super) fn refused(path: &Path, value: &str, error: &io::Error) -> Error {
    let key = path.strip_prefix("/proc/sys/").unwrap_or(path).to_string_lossy().replace('/', ".");
    let congestion = key.ends_with("tcp_congestion_control");
    let message = format!("cannot set {key} to `{value}`: {error}");
    let help = match error.kind() {
        io::ErrorKind::NotFound if congestion => {
            let there =
                std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
            format!(
                "this kernel has {}; load the missing one with `sudo modprobe tcp_{value}`, or use another preset \
                 (`lasthop list presets`)",
                there.unwrap_or_default().trim().replace(' ', ", ")
            )
        }
        io::ErrorKind::NotFound => {
            "this kernel does not have that setting: use a newer one, or a host without a preset"
                .to_owned()
        }
        io::ErrorKind::InvalidInput if key.ends_with("tcp_ecn") && value == "3" => {
            "this kernel's TCP has no accurate ECN, as Linux 6.18: leave `accurate-ecn` out, or write \
             `stack = \"lasthop\"` for a host with our TCP"
                .to_owned()
        }
        io::ErrorKind::InvalidInput => {
            "this kernel does not accept that value: use a newer one, or leave the key out".to_owned()
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "/proc/sys is read-only, as in most containers: start it with `--privileged` or with \
             `--security-opt systempaths=unconfined`"
                .to_owned()
        }
        _ => "`lasthop doctor` tries every preset".to_owned(),
    };
    Error::new(message, help)
}

#[cfg(test)]
mod tests {
    use super::super::host::Side;
    use super::*;

    #[test]
    fn a_preset_is_found_by_its_name() {
        for preset in Preset::ALL {
            assert_eq!(Preset::named(preset.name()), Some(preset));
            assert_eq!(
                serde_json::to_value(preset).ok(),
                Some(serde_json::Value::from(preset.name()))
            );
        }
        assert_eq!(Preset::named("linux"), None);
    }

    #[test]
    fn a_setting_holds_where_it_reads_back_or_may_be_missing() {
        let found = |optional, value: Option<&str>| {
            let setting = Setting { optional, ..sysctl("tcp_ecn", "2", "") };
            Found { setting, value: value.map(str::to_owned) }.holds()
        };
        let held =
            [Some("2"), Some("1"), None].map(|value| [found(false, value), found(true, value)]);
        assert_eq!(held, [[true, true], [false, false], [false, true]]);
    }

    /// Mechanism and scope of each setting.
    #[test]
    fn each_preset_has_its_expected_settings() {
        for preset in Preset::ALL {
            let value = |key: &str| preset.settings().find(|s| s.key == key).map(|s| s.value);
            let (name, old) = (preset.name(), preset == Preset::Linux1997);
            let control = name.strip_prefix("linux-").filter(|_| !old).unwrap_or("reno");
            assert_eq!(value("tcp_congestion_control"), Some(control), "{name}");
            assert_eq!(value("tcp_sack"), Some(if old { "0" } else { "1" }), "{name}");
            assert_eq!(value("rto_min"), Some(if old { "1000" } else { "200" }), "{name}");
            assert_eq!(value("initcwnd"), Some("1").filter(|_| old), "{name}");
            assert_eq!(value("tcp_no_metrics_save"), Some("1"), "{name}");
            let linear = if old { "0" } else { "4" };
            assert_eq!(value("tcp_syn_linear_timeouts"), Some(linear), "{name}");
            let count = |knob| preset.settings().filter(|s| s.knob == knob).count();
            let expected = if old { [17, 3, 1] } else { [17, 1, 1] };
            assert_eq!(
                [Knob::Sysctl, Knob::Route, Knob::CongestionControl].map(count),
                expected,
                "{name}"
            );
            let optional: Vec<_> =
                preset.settings().filter(|s| s.optional).map(|s| s.key).collect();
            assert_eq!(optional, ["tcp_syn_linear_timeouts"], "{name}");
            assert!(!preset.description().is_empty(), "{name}");
            let setting = preset.settings().find(|s| s.key == "tcp_sack").unwrap();
            assert_eq!(path(setting), Path::new("/proc/sys/net/ipv4/tcp_sack"));
        }
    }

    #[test]
    fn each_refusal_has_its_remedy() {
        let path = Path::new("/proc/sys/net/ipv4/tcp_sack");
        let cases = [
            (io::ErrorKind::NotFound, "use a newer one"),
            (io::ErrorKind::ReadOnlyFilesystem, "--privileged"),
            (io::ErrorKind::InvalidInput, "leave the key out"),
            (io::ErrorKind::PermissionDenied, "lasthop doctor"),
        ];
        for (kind, remedy) in cases {
            let error = refused(path, "1", &io::Error::from(kind));
            assert!(error.message.starts_with("cannot set net.ipv4.tcp_sack to `1`: "), "{error}");
            assert!(error.help.contains(remedy), "{kind:?}: {}", error.help);
        }
        let ecn = Path::new("/proc/sys/net/ipv4/tcp_ecn");
        let error = refused(ecn, "3", &io::ErrorKind::InvalidInput.into());
        assert!(error.help.contains("leave `accurate-ecn` out"), "{}", error.help);
    }

    #[test]
    fn preset_keys_are_unique_and_have_reasons() {
        for preset in Preset::ALL {
            let mut keys: Vec<_> = preset.settings().map(|setting| setting.key).collect();
            keys.sort_unstable();
            let count = keys.len();
            keys.dedup();
            assert_eq!(keys.len(), count, "{}", preset.name());
            assert!(preset.settings().all(|setting| !setting.why.is_empty()));
            let controls = |s: &Setting| s.knob == Knob::CongestionControl;
            assert_eq!(preset.settings().filter(controls).count(), 1);
        }
    }

    #[test]
    fn a_missing_congestion_control_names_its_module() {
        let path = Path::new("/proc/sys/net/ipv4/tcp_congestion_control");
        let error = refused(path, "vegas", &io::Error::from(io::ErrorKind::NotFound));
        assert!(error.message.contains("net.ipv4.tcp_congestion_control to `vegas`"), "{error}");
        assert!(error.help.contains("modprobe tcp_vegas"), "{}", error.help);
    }

    /// Keys of a host win over its preset, each once.
    #[test]
    fn keys_of_a_host_win_over_its_preset() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let mut spec =
            HostSpec::new("h", Side::Left, [10, 0, 0, 1].into()).preset(Preset::Linux1997);
        spec.route = vec![pair("window", "4000"), pair("rto_min", "300ms"), pair("advmss", "500")];
        spec.congestion = Some("hybla".to_owned());
        let denied = |_: &Path, _: &str| Err(io::ErrorKind::PermissionDenied.into());
        let words = route_words(&spec, denied).unwrap();
        assert_eq!(words, "congctl hybla initcwnd 1 window 4000 rto_min 300ms advmss 500");
        let missing = |_: &Path, _: &str| Err(io::ErrorKind::NotFound.into());
        let error = route_words(&spec, missing).unwrap_err();
        assert!(error.help.contains("modprobe tcp_hybla"), "{}", error.help);
    }

    /// Route attributes with and without permission to set the congestion control as a sysctl.
    #[test]
    fn a_route_sets_congestion_control_without_sysctl_permission() {
        let cases = [
            (Preset::Linux1997, "rto_min 1000ms window 16384 initcwnd 1", "reno"),
            (Preset::LinuxReno, "rto_min 200ms", "reno"),
            (Preset::LinuxCubic, "rto_min 200ms", "cubic"),
            (Preset::LinuxBbr, "rto_min 200ms", "bbr"),
        ];
        for (preset, words, control) in cases {
            let name = preset.name();
            let written = std::cell::RefCell::new(Vec::new());
            let spec = HostSpec::new("h", Side::Left, [10, 0, 0, 1].into()).preset(preset);
            let allowed = route_words(&spec, |path, value| {
                written.borrow_mut().push((path.to_owned(), value.to_owned()));
                Ok(())
            });
            assert_eq!(allowed.unwrap(), words, "{name}");
            let path = Path::new("/proc/sys/net/ipv4/tcp_congestion_control").to_owned();
            assert_eq!(*written.borrow(), [(path, control.to_owned())], "{name}");
            let denied = |_: &Path, _: &str| Err(io::ErrorKind::PermissionDenied.into());
            let expected = format!("congctl {control} {words}");
            assert_eq!(route_words(&spec, denied).unwrap(), expected, "{name}");
            let missing = |_: &Path, _: &str| Err(io::ErrorKind::NotFound.into());
            let error = route_words(&spec, missing).unwrap_err();
            assert!(error.message.contains(control), "{name}: {error}");
        }
    }
}
