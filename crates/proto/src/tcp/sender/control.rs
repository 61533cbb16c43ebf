//! The window growths by name: to register one is one file and one line here.

use crate::tcp::config::{Congestion, TcpConfig};
use crate::units::{Rate, Time};

use super::bbr::Bbr;
use super::cubic::Cubic;
use super::family::variants;
use super::growth::{Acked, Growth, Loss, Sample};
use super::slow_start::SlowStartAvoidance;
use super::vegas::Vegas;
use super::{Chunk, Window};

variants! {
    /// The window growth that a sender is configured for.
    #[derive(Clone, Debug)]
    AnyGrowth: Growth,
    /// The window growth that `config` asks for.
    new(config: &TcpConfig) by config.congestion;
    {
        Reno(SlowStartAvoidance): Congestion::Reno => SlowStartAvoidance::new(config),
        Cubic(Box<Cubic>): Congestion::Cubic => Box::new(Cubic::new(config)),
        Bbr(Box<Bbr>): Congestion::Bbr => Box::new(Bbr::new(config)),
        Vegas(Box<Vegas>): Congestion::Vegas => Box::new(Vegas::new(config.vegas)),
    }
    asks {
        steers() -> bool;
        overdue(now: Time, window: &Window) -> bool;
        pacing() -> Option<Rate>;
    }
    tells {
        on_ack(window: &mut Window, ack: &Acked) -> ();
        after_loss(now: Time, window: &Window, loss: Loss) -> u32;
        on_sample(window: &mut Window, sample: &Sample) -> ();
        restart(now: Time, idle: bool) -> ();
        on_sent(now: Time, window: &Window, chunk: &Chunk) -> ();
        after_repair(now: Time, window: &Window) -> bool;
    }
}
