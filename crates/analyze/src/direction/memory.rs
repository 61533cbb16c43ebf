//! Memory of a direction: the lists of its result, and the state of packets in flight.

use super::Tracker;

impl Tracker {
    /// Entries of the lists in the result.
    pub(crate) fn listed(&self) -> usize {
        let reading = &self.reading;
        let lists = reading.points.len() + reading.losses.len() + reading.stalls.len();
        lists + reading.over_time.listed()
    }

    /// Shortens each list to `most` entries: of points, losses and stalls the first ones remain, of samples one in
    /// several.
    pub(crate) fn shorten(&mut self, most: usize) {
        let reading = &mut self.reading;
        reading.points_omitted += cut(&mut reading.points, most);
        reading.stalls_omitted += cut(&mut reading.stalls, most);
        cut(&mut self.ticks, most);
        let disproved = self.disproved.iter().skip(most).filter(|none| **none).count() as u64;
        reading.losses_omitted += cut(&mut reading.losses, most).saturating_sub(disproved);
        cut(&mut self.disproved, most);
        cut(&mut self.episode_of, most);
        reading.over_time.shorten(most);
    }

    /// Entries of the state that later packets need.
    pub(crate) fn pending(&self) -> usize {
        let queues = self.outstanding.len() + self.samples.len();
        let repairs = self.repairs.len() + self.settled.len();
        let ranges = self.gaps.len() + self.lost_segments.len() + self.arrived.len();
        queues + repairs + ranges + self.reading.over_time.pending()
    }

    /// Frees this state. Later packets are analysed as if the capture began there.
    pub(crate) fn release(&mut self) {
        let repairs = core::mem::take(&mut self.repairs);
        repairs.into_iter().for_each(|repair| self.settle(repair));
        (self.outstanding, self.samples, self.settled) = Default::default();
        (self.gaps, self.lost_segments, self.arrived) = Default::default();
        self.reading.over_time.finish();
    }
}

/// Shortens `list` to `most` entries, and returns the number of removed ones.
fn cut<T>(list: &mut Vec<T>, most: usize) -> u64 {
    let removed = list.len().saturating_sub(most);
    if removed > 0 {
        list.truncate(most);
        list.shrink_to_fit();
    }
    removed as u64
}
