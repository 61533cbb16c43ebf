//! How to deploy a scheme on the real link: a file for `lasthop station` or `lasthop link`, or a command.

use lasthop_scenario::{Scheme, schemes_of};

use super::link::{Direction, Link};
use super::{Advice, MAX_LISTED, helping};

/// Maximum number of remedies.
const MOST: usize = 3;

/// A way to deploy a scheme.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Remedy {
    pub scheme: String,
    /// The instruction, in one line.
    pub how: String,
    /// Name and text of a ready file, if needed.
    pub file: Option<(String, String)>,
}

/// Ready files and commands for the schemes that help, the best first, one for each way to deploy.
pub fn remedies(advice: &Advice, link: &Link) -> Vec<Remedy> {
    let Some(place) = advice.comparison.results.points.first() else { return Vec::new() };
    let text = link.scenario(1).expect("a link with advice has a scenario");
    let known = schemes_of(&text).expect("a scenario with advice has schemes");
    let listed = helping(place, advice.threshold, advice.there).take(MAX_LISTED);
    let schemes = listed.filter_map(|row| known.iter().find(|scheme| scheme.name == row.name()));
    schemes.filter_map(|scheme| of(scheme, link)).take(MOST).collect()
}

/// The way to deploy `scheme` on `link`; `None` for a scheme that is only simulated.
fn of(scheme: &Scheme, link: &Link) -> Option<Remedy> {
    let run = scheme.run.as_deref()?;
    let name = scheme.name.replace('+', "-");
    let (how, file) = match run {
        "station" => {
            let file = format!("station-{name}.toml");
            let place = match scheme.written("return.discipline") {
                Some(_) => "where the ACKs queue",
                None => "before the radio",
            };
            let mut how = format!(
                "on the router {place}: `sudo lasthop station {file}` (docs/how-to/station.md)"
            );
            if let Some(agent) = scheme.written("return.agent") {
                how += &format!(
                    "; and on a gateway at the sender's side of the link a station with `agent = {agent}`"
                );
            }
            (how, Some((file, station(scheme, link))))
        }
        "link" => {
            let file = format!("link-{name}.toml");
            let how = format!(
                "a tunnel over the link, one end on each side: `sudo lasthop link {file}` (docs/how-to/link.md)"
            );
            (how, Some((file, tunnel(link))))
        }
        command => {
            let who = scheme.change.first().map_or("sender", String::as_str);
            (format!("on the {who}: `{command}`"), None)
        }
    };
    Some(Remedy { scheme: scheme.name.clone(), how, file })
}

fn station(scheme: &Scheme, link: &Link) -> String {
    let mut text = format!(
        "# Made by `lasthop advise` for {}. Check it: lasthop station THIS-FILE --check\n\n\
         left = \"eth0\"                   # to the server\n\
         right = \"wlan0\"                 # to the lossy link\n\n[[path]]\n",
        scheme.name
    );
    if let Some(discipline) = scheme.written("return.discipline") {
        // The queue must form here, not in the slow link behind it.
        let back = match link.direction {
            Direction::Download => "left",
            Direction::Upload => "right",
        };
        let rate = link.rate_back.bps() / 100 * 95;
        let red =
            scheme.written("return.red").map_or(String::new(), |red| format!(", red = {red}"));
        text += &format!(
            "# just slower than the way of the ACKs, so that they queue here\n\
             link = {{ rate-{back} = \"{rate}bit\", queue = \"{}\", discipline-{back} = {discipline}{red} }}\n",
            link.queue
        );
        return text;
    }
    let settings = scheme.settings();
    for (key, value) in settings.filter(|(key, _)| !key.contains('.')) {
        text += &format!("{key} = \"{value}\"\n");
    }
    text
}

fn tunnel(link: &Link) -> String {
    format!(
        "# Made by `lasthop advise`: the end that calls. The other one has `listen = \"0.0.0.0:4747\"` in place of \
         `peer` and\n\
         # an address of its own. `lasthop link --keygen` makes the key for both.\n\n\
         peer = \"198.51.100.7:4747\"\n\
         addresses = [\"10.8.0.2/24\"]\n\
         key-file = \"/etc/lasthop/link.key\"\n\
         rate = \"{}\"\n",
        // Slightly less than the path's capacity; otherwise the tunnel fills a queue of the path.
        format_args!("{}bit", link.rate.min(link.rate_back).bps() / 100 * 95)
    )
}
