//! Drawings in a terminal with two by four dots per character (Unicode's braille patterns).

/// A field of dots.
#[derive(Debug)]
pub struct Dots {
    columns: usize,
    cells: Vec<u8>,
}

impl Dots {
    /// An empty field of the given size in characters.
    pub fn new(columns: usize, rows: usize) -> Dots {
        Dots { columns, cells: vec![0; columns * rows] }
    }

    fn rows(&self) -> usize {
        self.cells.len() / self.columns
    }

    /// Draws a straight line between two points: `x` from left 0 to right 1, `y` from bottom 0 to top 1. A
    /// line with an end outside is left out.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let (Some(from), Some(to)) = (self.place(from.0, from.1), self.place(to.0, to.1)) else {
            return;
        };
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        let between = |a: usize, b: usize, i: usize| {
            let (a, b, share) = (a as f64, b as f64, i as f64 / steps as f64);
            (a + (b - a) * share).round() as usize
        };
        for i in 0..=steps {
            self.set(between(from.0, to.0, i), between(from.1, to.1, i));
        }
    }

    /// The column of characters that contains `x`.
    pub fn column(&self, x: f64) -> usize {
        self.place(x, 0.0).map_or(0, |(x, _)| x / 2)
    }

    /// The drawing, line by line.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let character = |cell: &u8| char::from_u32(0x2800 + u32::from(*cell)).unwrap_or(' ');
        self.cells.chunks(self.columns).map(move |row| row.iter().map(character).collect())
    }

    /// Dot coordinates from the top left.
    fn place(&self, x: f64, y: f64) -> Option<(usize, usize)> {
        let inside = |v: f64| (0.0..=1.0).contains(&v);
        let (width, height) = (self.columns * 2 - 1, self.rows() * 4 - 1);
        (inside(x) && inside(y)).then(|| {
            ((x * width as f64).round() as usize, ((1.0 - y) * height as f64).round() as usize)
        })
    }

    fn set(&mut self, x: usize, y: usize) {
        // Bits of the eight dots, column by column: Unicode 2800, "Braille Patterns".
        const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        self.cells[y / 4 * self.columns + x / 2] |= BITS[x % 2][y % 4];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(dots: &Dots) -> Vec<String> {
        dots.lines().collect()
    }

    #[test]
    fn corners_are_where_they_belong() {
        let mut dots = Dots::new(2, 1);
        dots.line((0.0, 0.0), (0.0, 0.0));
        dots.line((1.0, 1.0), (1.0, 1.0));
        dots.line((0.0, 0.0), (1.1, 0.5));
        dots.line((0.0, 0.0), (f64::NAN, 0.5));
        assert_eq!(drawn(&dots), ["⡀⠈"]);
    }

    #[test]
    fn a_line_has_no_gaps() {
        let mut dots = Dots::new(3, 1);
        dots.line((0.0, 0.0), (1.0, 0.0));
        assert_eq!(drawn(&dots), ["⣀⣀⣀"]);
        let mut steep = Dots::new(1, 2);
        steep.line((0.0, 0.0), (0.0, 1.0));
        assert_eq!(drawn(&steep), ["⡇", "⡇"]);
    }
}
