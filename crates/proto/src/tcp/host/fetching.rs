//! Clients of Web pages and of videos: their actions on the connections of their host.

use crate::event::{ClientEvent, ClientNews, EventKind, Interest};
use crate::machine::Out;
use crate::rng::Stream;
use crate::tcp::Connection;
use crate::tcp::exchange::ExchangeState;
use crate::tcp::fetch::{Client, Fetching};
use crate::tcp::page::{Browser, Lane, Page};
use crate::tcp::traffic::App;
use crate::tcp::video::{Player, Video};
use crate::units::{Bytes, Time};
use crate::wire::FlowKey;

use super::Host;

fn report(client: FlowKey, news: ClientNews, out: &mut Out) {
    if out.accepts(Interest::RESULTS) {
        out.event(EventKind::Client(ClientEvent { client, news }));
    }
}

impl Host {
    /// Starts a client at `start` that loads pages from the server in `client`, and begins none at `stop` or
    /// later. [`Host::answer`] has set up the server on that port. `rng` is this client's own stream.
    pub fn load(
        &mut self,
        client: FlowKey,
        (start, stop): (Time, Option<Time>),
        page: Page,
        rng: Stream,
    ) {
        let browser = Box::new(Browser::new(client, page, stop, rng));
        self.apps.add(App::Fetching(Some(Client::Browser(browser))), start);
        self.unfinished += 1;
    }

    /// Starts a client at `start` that plays a video, and sends no request at `stop` or later; otherwise as
    /// [`Host::load`].
    pub fn play(&mut self, client: FlowKey, (start, stop): (Time, Option<Time>), video: Video) {
        let player = Box::new(Player::new(client, video, stop));
        self.apps.add(App::Fetching(Some(Client::Player(player))), start);
        self.unfinished += 1;
    }

    /// Opens a connection of a client to its server, if the limit permits it.
    fn fetch_from(&mut self, now: Time, client: FlowKey, request: Bytes) -> Option<usize> {
        if self.is_full() {
            return None;
        }
        let stream = 1 << 31 | self.connections.len() as u32;
        let begin = |c: &mut Connection| {
            c.exchange(ExchangeState::Requested(Fetching::client(request)));
            c.connect(now);
        };
        Some(self.start(client.dst, client.dst_port, now, stream, begin))
    }

    /// Lets a client continue, and returns its next deadline, if it does not wait for data only.
    pub(super) fn step_fetching(&mut self, now: Time, index: usize, out: &mut Out) -> Option<Time> {
        let App::Fetching(slot) = &mut self.apps.all[index] else { return None };
        let mut client = slot.take()?;
        let next = match &mut client {
            Client::Browser(browser) => self.load_on(now, browser, index, out),
            Client::Player(player) => self.play_on(now, player, index, out),
        };
        let Some(next) = next else {
            self.unfinished -= 1;
            for connection in client.connections() {
                self.apps.fetched_by.remove(&connection);
                self.act(connection, |c| c.close(now, out));
            }
            return None;
        };
        if let App::Fetching(slot) = &mut self.apps.all[index] {
            *slot = Some(client);
        }
        next.or_none()
    }

    /// Requests `size` on a connection; the arrival wakes the application.
    fn ask(&mut self, now: Time, index: usize, connection: usize, size: Bytes, out: &mut Out) {
        self.act(connection, |c| c.request_response(now, size, out));
        self.apps.fetched_by.insert(connection, index);
    }

    /// Lets a client of pages act until it has to wait.
    fn load_on(
        &mut self,
        now: Time,
        browser: &mut Browser,
        index: usize,
        out: &mut Out,
    ) -> Option<Time> {
        if !browser.loading {
            if !browser.may(now) {
                return None;
            }
            browser.lanes.retain(|lane| !self.connections[lane.connection].is_over());
            browser.begin();
            report(browser.client, ClientNews::PageAsked, out);
        }
        let mut came = false;
        for lane in &mut browser.lanes {
            let connection = &self.connections[lane.connection];
            let (done, begun) = connection.fetched();
            came |= begun || done > lane.done;
            lane.waits -= done - core::mem::replace(&mut lane.done, done);
            if lane.waits > 0 {
                self.apps.fetched_by.insert(lane.connection, index);
                if connection.is_over() {
                    return None;
                }
            }
        }
        if came && !core::mem::replace(&mut browser.begins, true) {
            report(browser.client, ClientNews::PageBegins, out);
        }
        browser.first |= browser.begins && !browser.waits();
        while let Some((lane, size)) = browser.next() {
            browser.left.pop_front();
            if lane == browser.lanes.len() {
                let connection = self.fetch_from(now, browser.client, browser.page.request)?;
                browser.lanes.push(Lane { connection, waits: 0, done: 0 });
            }
            browser.lanes[lane].waits += 1;
            self.ask(now, index, browser.lanes[lane].connection, size, out);
        }
        if browser.waits() {
            return Some(Time::NEVER);
        }
        browser.loading = false;
        report(browser.client, ClientNews::PageLoaded, out);
        Some(now + browser.think()).filter(|next| browser.may(*next))
    }

    /// Lets a client of a video act until it has to wait.
    fn play_on(
        &mut self,
        now: Time,
        player: &mut Player,
        index: usize,
        out: &mut Out,
    ) -> Option<Time> {
        let client = player.client;
        if let Some(connection) = player.connection {
            if self.connections[connection].fetched().0 > u64::from(player.there) {
                report(client, ClientNews::VideoSegment(player.arrives(now)), out);
            }
            if player.waits() && self.connections[connection].is_over() {
                return None;
            }
        }
        if player.runs_dry(now) {
            if player.has_all(now) {
                report(client, ClientNews::VideoEnds, out);
                return None;
            }
            report(client, ClientNews::VideoStalls, out);
        }
        if player.plays(now) {
            report(client, ClientNews::VideoPlays, out);
        }
        let asks = player.next_request_time(now);
        if asks.is_some_and(|at| at <= now) {
            if player.requested == 0 {
                report(client, ClientNews::VideoAsked, out);
            }
            let connection = match player.connection {
                Some(connection) => connection,
                None => self.fetch_from(now, client, player.video.request)?,
            };
            player.connection = Some(connection);
            let size = player.choose(now);
            self.ask(now, index, connection, size, out);
        }
        let waits = player.waits();
        if let Some(connection) = player.connection.filter(|_| waits) {
            self.apps.fetched_by.insert(connection, index);
        }
        let dry = player.dry_at();
        let room = asks.filter(|at| *at > now);
        dry.into_iter().chain(room).chain(waits.then_some(Time::NEVER)).min()
    }
}
