//! Requests and responses on a connection.

use crate::event::TcpKind;
use crate::machine::Out;
use crate::tcp::exchange::Exchanging;
use crate::units::Time;

use super::Connection;

impl Connection {
    /// This connection carries exchanges. Before it opens.
    pub(in crate::tcp) fn exchange(&mut self, exchange: Exchanging) {
        self.exchange = Some(Box::new(exchange));
    }

    /// The client asks once more. Where an exchange has its own connection, nothing follows the request.
    pub(in crate::tcp) fn ask(&mut self, now: Time, out: &mut Out) {
        if !self.may_write() {
            return;
        }
        let Some(exchange) = &mut self.exchange else { return };
        exchange.begun += 1;
        self.tx.core.window.end = 1 + exchange.begun * exchange.sends;
        self.tx.core.window.fin = exchange.closes;
        self.report(TcpKind::Asked, out);
        self.flush(now, out);
    }

    /// The client will ask for nothing more.
    pub(in crate::tcp) fn ask_no_more(&mut self, now: Time, out: &mut Out) {
        if self.may_write() {
            self.tx.core.window.fin = true;
            if self.state.is_synchronised() {
                self.check_complete(out);
            }
            self.flush(now, out);
        }
    }

    /// Whether its application wants to know: an answer has come, or nothing will come; without exchanges, everything
    /// was sent.
    pub(in crate::tcp) fn has_news(&mut self) -> bool {
        match &mut self.exchange {
            None => self.complete || self.is_over(),
            Some(exchange) => core::mem::take(&mut exchange.news) || self.is_over(),
        }
    }

    /// More was delivered: requests that are there in full are answered, and answers that are end their exchange.
    pub(super) fn exchange_delivered(&mut self, out: &mut Out) {
        let delivered = self.rx.delivered();
        while let Some(exchange) = &mut self.exchange
            && delivered >= (exchange.done + 1) * exchange.gets
        {
            exchange.done += 1;
            if exchange.asks {
                exchange.news = true;
                self.report(TcpKind::Answered, out);
            } else {
                exchange.begun += 1;
                self.tx.core.window.end = 1 + exchange.begun * exchange.sends;
                self.tx.core.window.fin |= exchange.closes;
            }
        }
    }
}
