//! Grades of the latency that a load adds.

use serde::{Deserialize, Serialize};

/// Grade of the increase of the round trip under load, by the limits of DSLReports
/// (<https://www.dslreports.com/faq/17930>). The best grade is the least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Grade {
    /// Below 5 ms.
    #[serde(rename = "A+")]
    APlus,
    /// Below 30 ms.
    A,
    /// Below 60 ms.
    B,
    /// Below 200 ms.
    C,
    /// Below 400 ms.
    D,
    /// 400 ms and more.
    F,
}

impl Grade {
    /// All grades, the best first.
    pub const ALL: [Grade; 6] = [Grade::APlus, Grade::A, Grade::B, Grade::C, Grade::D, Grade::F];

    /// The grade of an increase in seconds.
    pub fn of(increase: f64) -> Grade {
        match increase * 1e3 {
            ms if ms < 5.0 => Grade::APlus,
            ms if ms < 30.0 => Grade::A,
            ms if ms < 60.0 => Grade::B,
            ms if ms < 200.0 => Grade::C,
            ms if ms < 400.0 => Grade::D,
            _ => Grade::F,
        }
    }

    /// The grade as text.
    pub fn name(self) -> &'static str {
        match self {
            Grade::APlus => "A+",
            Grade::A => "A",
            Grade::B => "B",
            Grade::C => "C",
            Grade::D => "D",
            Grade::F => "F",
        }
    }
}

impl std::fmt::Display for Grade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grades_have_the_limits_of_the_table() {
        let grades = [0.0, 4.9, 5.0, 29.9, 30.0, 59.9, 60.0, 199.9, 200.0, 399.9, 400.0, 9e9];
        let words: Vec<String> = grades.iter().map(|ms| Grade::of(ms / 1e3).to_string()).collect();
        assert_eq!(words, ["A+", "A+", "A", "A", "B", "B", "C", "C", "D", "D", "F", "F"]);
        assert!(Grade::ALL.is_sorted());
    }
}
