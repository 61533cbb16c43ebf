//! The programs in an object file of clang: ELF for BPF, all functions inlined, no type information.
//!
//! The file is checked in, so this reads only the format of clang, and refuses all others.

use std::ffi::CStr;

/// The section with the programs.
const SECTION: &str = "tc";

/// R_BPF_64_64: the address of a map, in an instruction of two words.
const ADDRESS: u64 = 1;

/// An object file.
pub(super) struct Object<'a> {
    sections: Vec<Section<'a>>,
    symbols: Vec<Symbol<'a>>,
}

struct Section<'a> {
    name: &'a str,
    kind: u32,
    data: &'a [u8],
    entry: usize,
    link: usize,
}

struct Symbol<'a> {
    name: &'a str,
    at: usize,
    len: usize,
}

fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let mut word = [0; 8];
    word[..len].copy_from_slice(bytes.get(at..at + len)?);
    Some(u64::from_le_bytes(word))
}

fn text(bytes: &[u8], at: usize) -> Option<&str> {
    CStr::from_bytes_until_nul(bytes.get(at..)?).ok()?.to_str().ok()
}

impl<'a> Object<'a> {
    /// Reads the tables of the file.
    pub fn read(bytes: &'a [u8]) -> Option<Object<'a>> {
        // 64 bits, little-endian, the machine is BPF
        let is_ours = bytes.starts_with(b"\x7fELF\x02\x01") && number(bytes, 18, 2)? == 247;
        let (table, count) = (number(bytes, 40, 8)? as usize, number(bytes, 60, 2)? as usize);
        let header = |i: usize, at: usize, len: usize| number(bytes, table + 64 * i + at, len);
        let data = |i: usize| {
            let (from, len) = (header(i, 24, 8)? as usize, header(i, 32, 8)? as usize);
            bytes.get(from..from.checked_add(len)?)
        };
        let names = data(number(bytes, 62, 2)? as usize)?;
        let mut object = Object { sections: Vec::new(), symbols: Vec::new() };
        for i in 0..count.min(64) {
            object.sections.push(Section {
                name: text(names, header(i, 0, 4)? as usize)?,
                kind: header(i, 4, 4)? as u32,
                data: data(i)?,
                link: header(i, 40, 4)? as usize,
                entry: header(i, 56, 8)? as usize,
            });
        }
        let table = object.sections.iter().find(|section| section.kind == 2)?;
        let names = object.sections.get(table.link)?.data;
        for entry in table.data.chunks_exact(table.entry.max(24)) {
            object.symbols.push(Symbol {
                name: text(names, number(entry, 0, 4)? as usize)?,
                at: number(entry, 8, 8)? as usize,
                len: number(entry, 16, 8)? as usize,
            });
        }
        is_ours.then_some(object)
    }

    fn section(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The licence that the programs state to the kernel.
    pub fn license(&self) -> Option<&'a CStr> {
        CStr::from_bytes_until_nul(self.section("license")?.data).ok()
    }

    /// The instructions of the program `name`, with the descriptors of `maps` put in by name.
    pub fn program(&self, name: &str, maps: &[(&str, i32)]) -> Option<Vec<u8>> {
        let symbol = self.symbols.iter().find(|symbol| symbol.name == name)?;
        let end = symbol.at + symbol.len;
        let mut code = self.section(SECTION)?.data.get(symbol.at..end)?.to_vec();
        for entry in self.section(".reltc")?.data.chunks_exact(16) {
            let (at, info) = (number(entry, 0, 8)? as usize, number(entry, 8, 8)?);
            if !(symbol.at..end).contains(&at) {
                continue;
            }
            let target = self.symbols.get((info >> 32) as usize)?;
            let (_, fd) = maps.iter().find(|(map, _)| *map == target.name)?;
            if info & 0xffff_ffff != ADDRESS {
                return None;
            }
            let instruction = code.get_mut(at - symbol.at..at - symbol.at + 16)?;
            // BPF_PSEUDO_MAP_FD as the source register: the kernel makes an address of the descriptor.
            instruction[1] = instruction[1] & 0x0f | 0x10;
            instruction[4..8].copy_from_slice(&fd.to_le_bytes());
        }
        Some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &[u8] = include_bytes!("../../bpf/station.bpf.o");
    const PROGRAMS: [&str; 4] = ["left_in", "right_in", "base_left", "base_right"];

    /// The maps that the file names, each with `fd`.
    fn maps(fd: i32) -> Vec<(&'static str, i32)> {
        let object = Object::read(OBJECT).unwrap();
        let table = object.section(".reltc").unwrap();
        let target = |entry: &[u8]| object.symbols[number(entry, 12, 4).unwrap() as usize].name;
        let mut names: Vec<&str> = table.data.chunks_exact(16).map(target).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|name| (name, fd)).collect()
    }

    /// Programs with different descriptors differ only in the instructions that load the address of a map.
    #[test]
    fn map_descriptors_are_inserted_only_at_map_loads() {
        let object = Object::read(OBJECT).unwrap();
        assert_eq!(object.license(), Some(c"MIT OR Apache-2.0"));
        let (first, second) = (maps(0x0102_0304), maps(0x1112_1314));
        assert!(first.len() > 2, "{first:?}");
        for name in PROGRAMS {
            let [one, two] = [&first, &second].map(|maps| object.program(name, maps).unwrap());
            let symbol = object.symbols.iter().find(|symbol| symbol.name == name).unwrap();
            assert_eq!(one.len(), symbol.len, "{name}");
            let section = object.section(SECTION).unwrap().data;
            let raw = &section[symbol.at..symbol.at + symbol.len];
            assert_eq!(one.len() % 8, 0, "{name} has whole instructions");
            let mut loads = 0;
            for at in (0..one.len()).step_by(8) {
                let [was, a, b] = [raw, &one, &two].map(|code| &code[at..at + 8]);
                if a == b {
                    assert_eq!(a, was, "{name}, byte {at}");
                    continue;
                }
                loads += 1;
                assert_eq!(
                    (a[0], a[1] >> 4, a[1] & 15),
                    (0x18, 1, was[1] & 15),
                    "{name}, byte {at}"
                );
                assert_eq!(a[4..], 0x0102_0304_i32.to_le_bytes(), "{name}, byte {at}");
                assert_eq!(b[4..], 0x1112_1314_i32.to_le_bytes(), "{name}, byte {at}");
            }
            let table = object.section(".reltc").unwrap();
            let inside = |entry: &[u8]| {
                let at = number(entry, 0, 8).unwrap() as usize;
                (symbol.at..symbol.at + symbol.len).contains(&at)
            };
            assert_eq!(loads, table.data.chunks_exact(16).filter(|e| inside(e)).count(), "{name}");
            assert!(loads > 0, "{name}");
        }
        let starts: Vec<usize> = PROGRAMS
            .map(|name| object.symbols.iter().find(|s| s.name == name).unwrap().at)
            .to_vec();
        assert!(starts.iter().any(|at| *at > 0), "{starts:?}: all begin at once");
    }

    #[test]
    fn a_foreign_or_truncated_object_file_is_refused() {
        let object = Object::read(OBJECT).unwrap();
        assert!(object.program("left_out", &maps(1)).is_none(), "no such program");
        assert!(object.program("left_in", &[]).is_none(), "a map that is not there");
        for (at, case) in
            [(0, "no ELF"), (4, "32 bits"), (5, "big-endian"), (18, "another machine")]
        {
            let mut bytes = OBJECT.to_vec();
            bytes[at] ^= 3;
            assert!(Object::read(&bytes).is_none(), "{case}");
        }
        // A truncated file is rejected, wherever it ends: the table of sections is at the end.
        for len in (0..OBJECT.len()).step_by(7) {
            assert!(Object::read(&OBJECT[..len]).is_none(), "cut to {len} bytes");
        }
    }
}
