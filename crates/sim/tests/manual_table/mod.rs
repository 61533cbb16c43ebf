//! Tables of the manual that tests generate.

use std::path::Path;

/// Compares `table` with that between the markers `name` of a page, or writes it with `LASTHOP_WRITE_FIGURES`.
pub fn check(page: &str, name: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let old = std::fs::read_to_string(&path).unwrap();
    let mark = format!("<!-- table: {name} -->\n");
    let (before, rest) = old.split_once(&mark).expect("the mark of the table");
    let (_, after) = rest.split_once("<!-- end -->").expect("an end");
    let new = format!("{before}{mark}\n{table}\n<!-- end -->{after}");
    if std::env::var_os("LASTHOP_WRITE_FIGURES").is_some() {
        std::fs::write(&path, new).unwrap();
    } else {
        assert!(old == new, "docs/{page} is out of date: run `make figures`. It is now\n{table}");
    }
}
