//! Requests and responses on a connection.

use crate::event::TcpKind;
use crate::machine::Out;
use crate::tcp::exchange::ExchangeState;
use crate::tcp::rope::Rope;
use crate::units::{Bytes, Time};

use super::{Connection, Outbox};

impl Connection {
    /// Attaches an exchange of requests and responses. Called before the connection opens.
    pub(in crate::tcp) fn exchange(&mut self, talk: ExchangeState) {
        if let ExchangeState::Requested(fetching) = &talk {
            self.outbox = Some(Box::new(Outbox::new(Rope::default(), u32::MAX)));
            if !fetching.is_client {
                self.store_delivered();
            }
        }
        self.exchange = Some(Box::new(talk));
    }

    /// Sends the client's next request. Where each exchange has a separate connection, the client closes after it.
    pub(in crate::tcp) fn ask(&mut self, now: Time, out: &mut Out) {
        if !self.may_write() {
            return;
        }
        let Some(ExchangeState::Constant(exchange)) = self.exchange.as_deref_mut() else { return };
        exchange.begun += 1;
        self.tx.supply(1 + exchange.begun * exchange.sends);
        self.tx.core.window.fin = exchange.closes;
        self.report(TcpKind::Asked, out);
        self.flush(now, out);
    }

    /// Sends a request of the client for `response`.
    pub(in crate::tcp) fn request_response(&mut self, now: Time, response: Bytes, out: &mut Out) {
        if !self.may_write() {
            return;
        }
        let Some(ExchangeState::Requested(fetching)) = self.exchange.as_deref_mut() else { return };
        let request = fetching.ask(response);
        self.report(TcpKind::Asked, out);
        self.write(now, request, out);
    }

    /// Number of received responses, and whether the next one has begun, for a client whose requests contain the size.
    pub(in crate::tcp) fn fetched(&self) -> (u64, bool) {
        match self.exchange.as_deref() {
            Some(ExchangeState::Requested(fetching)) => (fetching.done, fetching.begun),
            _ => (0, false),
        }
    }

    /// Whether there is an event for the application since the last call: a response, or the end of the connection.
    /// Without exchanges the event is that all data was acknowledged.
    pub(in crate::tcp) fn has_news(&mut self) -> bool {
        let news = match self.exchange.as_deref_mut() {
            None => return self.complete || self.is_over(),
            Some(ExchangeState::Constant(exchange)) => &mut exchange.news,
            Some(ExchangeState::Requested(fetching)) => &mut fetching.news,
        };
        core::mem::take(news) || self.is_over()
    }

    /// Processes newly delivered data: answers complete requests, and counts complete responses.
    pub(super) fn exchange_delivered(&mut self, out: &mut Out) {
        let delivered = self.rx.delivered();
        match self.exchange.as_deref() {
            Some(ExchangeState::Constant(_)) => {}
            Some(ExchangeState::Requested(fetching)) if fetching.is_client => {
                while let Some(ExchangeState::Requested(fetching)) = self.exchange.as_deref_mut()
                    && fetching.comes(delivered)
                {
                    self.report(TcpKind::Answered, out);
                }
                return;
            }
            Some(ExchangeState::Requested(_)) => return self.answer_requests(),
            None => return,
        }
        while let Some(ExchangeState::Constant(exchange)) = self.exchange.as_deref_mut()
            && delivered >= (exchange.done + 1) * exchange.gets
        {
            exchange.done += 1;
            if exchange.is_client {
                exchange.news = true;
                self.report(TcpKind::Answered, out);
            } else {
                exchange.begun += 1;
                self.tx.supply(1 + exchange.begun * exchange.sends);
                self.tx.core.window.fin |= exchange.closes;
            }
        }
    }

    /// Answers the complete requests that contain the size of their response.
    fn answer_requests(&mut self) {
        let mut delivered = Vec::new();
        self.take_delivered(&mut delivered);
        let Some(ExchangeState::Requested(fetching)) = self.exchange.as_deref_mut() else { return };
        let answers = fetching.answers(&delivered, self.stream);
        if !self.tx.core.window.fin && !self.aborted {
            for body in answers {
                let mut done = 0;
                while done < body.len() {
                    done += self.append_buffer(&body, done, false).0;
                }
            }
        }
    }
}
