//! The two sides of a stage, and its number on the path.

/// A direction along the path. Packets to the `Right` arrive at the neighbour from its `Left`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Towards the first stage of the path.
    Left,
    /// Towards the last stage of the path.
    Right,
}

impl Side {
    /// Both directions, in the order of [`Side::index`].
    pub const BOTH: [Side; 2] = [Side::Left, Side::Right];

    /// The opposite direction.
    pub fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }

    /// The name in traces and random streams.
    pub fn word(self) -> &'static str {
        match self {
            Side::Left => "left",
            Side::Right => "right",
        }
    }

    /// 0 for left, 1 for right: for arrays with an element for each side.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A stage's index in the run, counted from the left.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default, serde::Serialize)]
pub struct StageId(pub u16);
