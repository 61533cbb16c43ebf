//! TCP end points: complete TCP from handshake to FIN, as a machine.
//!
//! [`host::Host`] is the stage: many [`connection::Connection`]s behind one address. A connection joins a
//! [`sender::Sender`] and a [`receiver::Receiver`]. A sender has three interfaces, each a trait with one file
//! per variant: [`sender::recovery::detect`] (loss detection), [`sender::recovery`] (retransmission) and
//! [`sender::congestion_control`] (growth and reduction of the window). [`words`] lists the combinations by name.
//!
//! Modelled: option negotiation, byte sequence numbers that wrap, FIN and RST, zero-window probing, delayed
//! ACKs, Karn's rule, exponential backoff, PAWS, silly-window avoidance at both ends. Only [`sockets`] has
//! keep-alives and the wait of Nagle's algorithm. Not modelled: reading of urgent data; it is passed through, or skipped.

pub mod acc;
pub mod accurate;
pub mod config;
pub mod connection;
pub mod exchange;
pub mod fast_open;
mod fetch;
mod giving_up;
pub mod host;
pub mod info;
mod keys;
pub mod keyword;
pub mod lookup;
pub mod opening;
pub mod page;
mod periods;
pub mod prediction;
pub mod presets;
mod quick;
pub mod receiver;
pub mod rope;
pub mod rtt;
pub mod sender;
pub mod settings;
pub mod shared_window;
pub mod sockets;
pub mod state;
pub mod t_tcp;
pub mod traffic;
pub mod video;
pub mod words;
pub mod work;

pub use accurate::AccurateEcn;
pub use config::{
    AccConfig, AckpReaction, Clock, Congestion, DelayedAck, ElnMode, ElnReaction, GivingUp,
    GrowthRule, Halving, IdleRestart, LossCause, Prediction, TcpConfig, Variant,
};
pub use connection::Connection;
pub use host::{Host, HostConfig};
pub use info::TcpInfo;
pub use settings::Settings;
