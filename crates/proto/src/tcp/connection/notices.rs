//! What a base station says about a segment of this connection.

use crate::event::Cause;
use crate::machine::Out;
use crate::units::Time;
use crate::wire::{Notice, Seq};

use super::Connection;

impl Connection {
    /// A base station says something about the segment that this end sent with number `seq`.
    ///
    /// # Errors
    /// Why it is not obeyed.
    pub fn on_notice(
        &mut self,
        now: Time,
        notice: Notice,
        seq: Seq,
        out: &mut Out,
    ) -> Result<(), Cause> {
        let position = seq.unwrap_near(self.iss, self.tx.window.una);
        if let Some(kind) = self.tx.on_notice(now, notice, position)? {
            self.report(kind, out);
        }
        Ok(())
    }
}
